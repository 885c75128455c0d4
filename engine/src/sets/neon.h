// ARM, 64 bit.
#pragma once
#define NLNET_SET neon
#define NLNET_BYTES 16
#define NLNET_REGISTERS 32
