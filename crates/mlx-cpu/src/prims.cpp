// The one MLX primitive behind every op of this crate: it allocates the outputs, takes over an input's buffer where
// that is safe, and hands raw views to a Rust kernel on MLX's CPU stream.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

namespace mx = mlx::core;

extern "C" {
// What a kernel sees of an array. Strides count elements.
struct mettle_view {
  void* data;
  const int* shape;
  const int64_t* strides;
  size_t ndim;
  int dtype;
};
// What an output is made of. `donor` is the input whose buffer it takes over (or whose bytes it starts with), or -1.
struct mettle_spec {
  const int* shape;
  size_t ndim;
  int dtype;
  int donor;
};
// Implemented in op.rs. `run` returns 0, or 1 with a message in `error`.
int mettle_kernel_run(void* kernel, const mettle_view* in, size_t n_in, const mettle_view* out, size_t n_out,
                      char* error, size_t capacity);
void mettle_kernel_drop(void* kernel);
}

namespace {

// The codes that op.rs's Dtype uses.
mx::Dtype dtype_of(int code) {
  switch (code) {
    case 0: return mx::uint8;
    case 1: return mx::uint32;
    case 2: return mx::int32;
    case 3: return mx::float16;
    case 4: return mx::bfloat16;
    case 5: return mx::float32;
    default: throw std::invalid_argument("mlx-cpu: unknown dtype code " + std::to_string(code));
  }
}

int code_of(mx::Dtype dtype) {
  for (int code = 0; code <= 5; code++)
    if (dtype_of(code) == dtype) return code;
  return -1;
}

// MLX's CPU buffers are plain malloc's with a header that holds the size; kernels want data on cache lines. So the
// block is laid out with the header before a line. Where MLX's buffers look otherwise, MLX allocates.
constexpr size_t LINE = 64;

void free_aligned(mx::allocator::Buffer buffer) {
  std::free(static_cast<char*>(buffer.ptr()) - (LINE - sizeof(size_t)));
}

bool header_is_a_size() {
  auto buffer = mx::allocator::malloc(1000);
  bool yes = static_cast<char*>(buffer.raw_ptr()) - static_cast<char*>(buffer.ptr()) == sizeof(size_t) &&
      *static_cast<size_t*>(buffer.ptr()) == 1000;
  mx::allocator::free(buffer);
  return yes;
}

void allocate(mx::array& out) {
  static const bool ours = header_is_a_size();
  size_t bytes = out.nbytes();
  char* block = ours ? static_cast<char*>(std::aligned_alloc(LINE, (LINE + bytes + LINE - 1) / LINE * LINE)) : nullptr;
  if (!block) {
    out.set_data(mx::allocator::malloc(bytes));
    return;
  }
  char* header = block + LINE - sizeof(size_t);
  std::memcpy(header, &bytes, sizeof bytes);
  out.set_data(mx::allocator::Buffer(header), free_aligned);
}

// A view that owns its shape and strides: the array itself may be gone when the kernel runs, its buffer is not.
struct View {
  char* data;
  std::vector<int> shape;
  std::vector<int64_t> strides;
  int dtype;

  explicit View(const mx::array& a)
      : data(const_cast<char*>(a.data<char>())),
        shape(a.shape().begin(), a.shape().end()),
        strides(a.strides().begin(), a.strides().end()),
        dtype(code_of(a.dtype())) {}

  mettle_view raw() const { return {data, shape.data(), strides.data(), shape.size(), dtype}; }
};

struct Copy {
  char* to;
  const char* from;
  size_t bytes;
};

class Kernel : public mx::Primitive {
 public:
  Kernel(mx::Stream stream, std::shared_ptr<void> kernel, const char* name, std::vector<int> donors)
      : Primitive(stream), kernel_(std::move(kernel)), name_(name), donors_(std::move(donors)) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    // Every output holds the inputs, though one is enough for what is left to do: a donor's buffer is taken over only
    // where it is held once.
    for (auto& out : outputs)
      if (&out.inputs() != &inputs) out.inputs().clear();
    std::vector<Copy> copies;
    for (size_t i = 0; i < outputs.size(); i++) {
      auto& out = outputs[i];
      int donor = donors_[i];
      if (donor < 0) {
        allocate(out);
        continue;
      }
      const auto& in = inputs[donor];
      if (!in.flags().row_contiguous || in.nbytes() != out.nbytes())
        throw std::invalid_argument("mlx-cpu: a donor must be contiguous and as large as its output");
      if (in.is_donatable()) {
        out.copy_shared_buffer(in);
      } else {
        allocate(out);
        copies.push_back({out.data<char>(), in.data<char>(), out.nbytes()});
      }
    }
    std::vector<View> in, out;
    in.reserve(inputs.size());
    out.reserve(outputs.size());
    for (const auto& a : inputs) in.emplace_back(a);
    for (const auto& a : outputs) out.emplace_back(a);
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.dispatch([kernel = kernel_, in = std::move(in), out = std::move(out), copies = std::move(copies)]() {
      for (const auto& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
      std::vector<mettle_view> raw_in, raw_out;
      raw_in.reserve(in.size());
      raw_out.reserve(out.size());
      for (const auto& view : in) raw_in.push_back(view.raw());
      for (const auto& view : out) raw_out.push_back(view.raw());
      char error[256];
      if (mettle_kernel_run(kernel.get(), raw_in.data(), raw_in.size(), raw_out.data(), raw_out.size(), error,
                            sizeof error))
        throw std::runtime_error(error);
    });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("mlx-cpu: this op runs on the CPU stream only");
  }

  const char* name() const override { return name_; }

 private:
  std::shared_ptr<void> kernel_;
  const char* name_;
  std::vector<int> donors_;
};

} // namespace

// Builds the graph node. Takes over `kernel` in any case. `inputs` and `results` are arrays of `mlx::core::array*`,
// as mlx-c's mlx_array holds them. `name` must be static. Returns 0, or 1 with a message in `error`.
extern "C" int mettle_op(void* kernel, const char* name, void* const* inputs, size_t n_inputs,
                         const mettle_spec* outputs, size_t n_outputs, void** results, char* error,
                         size_t capacity) {
  std::shared_ptr<void> owned(kernel, mettle_kernel_drop);
  try {
    std::vector<mx::array> in;
    in.reserve(n_inputs);
    for (size_t i = 0; i < n_inputs; i++) in.push_back(*static_cast<mx::array*>(inputs[i]));
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> dtypes;
    std::vector<int> donors;
    for (size_t i = 0; i < n_outputs; i++) {
      shapes.emplace_back(outputs[i].shape, outputs[i].shape + outputs[i].ndim);
      dtypes.push_back(dtype_of(outputs[i].dtype));
      donors.push_back(outputs[i].donor);
    }
    auto primitive = std::make_shared<Kernel>(mx::default_stream(mx::Device::cpu), std::move(owned), name, donors);
    auto made = mx::array::make_arrays(std::move(shapes), dtypes, primitive, in);
    for (size_t i = 0; i < n_outputs; i++) results[i] = new mx::array(std::move(made[i]));
    return 0;
  } catch (const std::exception& e) {
    std::strncpy(error, e.what(), capacity - 1);
    error[capacity - 1] = 0;
    return 1;
  }
}
