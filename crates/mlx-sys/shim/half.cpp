// The 16-bit accessors that mlx-c compiles on Arm only, over MLX's own half types, and on Linux the one macOS clock
// that mlx-rs's random module reads for a default seed.
#include <cstdint>
#include <ctime>
#include <cstring>
#include "mlx/c/array.h"
#include "mlx/mlx.h"

#if !defined(__aarch64__)
namespace {
template <class Half>
int item(uint16_t* out, mlx_array handle) {
  try {
    Half value = static_cast<mlx::core::array*>(handle.ctx)->item<Half>();
    std::memcpy(out, &value, sizeof(uint16_t));
    return 0;
  } catch (...) {
    return 1;
  }
}
template <class Half>
const uint16_t* data(mlx_array handle) {
  return reinterpret_cast<const uint16_t*>(static_cast<mlx::core::array*>(handle.ctx)->data<Half>());
}
} // namespace
extern "C" int mlx_array_item_float16(uint16_t* out, mlx_array handle) {
  return item<mlx::core::float16_t>(out, handle);
}
extern "C" int mlx_array_item_bfloat16(uint16_t* out, mlx_array handle) {
  return item<mlx::core::bfloat16_t>(out, handle);
}
extern "C" const uint16_t* mlx_array_data_float16(mlx_array handle) {
  return data<mlx::core::float16_t>(handle);
}
extern "C" const uint16_t* mlx_array_data_bfloat16(mlx_array handle) {
  return data<mlx::core::bfloat16_t>(handle);
}
#endif

#if !defined(__APPLE__)
extern "C" uint64_t mach_approximate_time() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000ull + uint64_t(now.tv_nsec);
}
#endif
