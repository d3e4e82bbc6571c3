// Pre-included for bindgen in place of mlx-c's half.h, which declares the 16-bit types on Arm only. bindgen turns
// _Float16 into the one-field struct that mlx-rs expects.
#pragma once
#define MLX_HALF_H
#define HAS_FLOAT16
#define HAS_BFLOAT16
typedef _Float16 float16_t;
typedef unsigned short bfloat16_t;
