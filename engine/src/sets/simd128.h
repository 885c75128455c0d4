// WebAssembly with SIMD, without its relaxed part.
#pragma once
#define NLNET_SET simd128
#define NLNET_BYTES 16
#define NLNET_REGISTERS 16
