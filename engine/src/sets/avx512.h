// x86-64 with AVX-512 F, BW, DQ and VL.
#pragma once
#define NLNET_SET avx512
#define NLNET_BYTES 64
#define NLNET_REGISTERS 32
