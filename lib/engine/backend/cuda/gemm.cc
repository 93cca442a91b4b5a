#include "backend/cuda/gemm.h"

#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "backend/cuda/channels.h"
#include "backend/cuda/device.h"
#include "backend/cuda/gelu_epilogue.h"
#include "base/error.h"
#include "base/mutex.h"

namespace fleet::cuda {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;  // NVIDIA's recommendation for Hopper

void check_gemm(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool unsupported =
      status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
  throw Error(unsupported ? ErrorCode::kUnsupported : ErrorCode::kInternal,
              std::string("cuBLASLt: ") + cublasLtGetStatusString(status), what,
              unsupported ? "use another type" : "");
}

// Never destroyed, because CUDA may be gone before static objects are destroyed. Internally
// thread-safe.
cublasLtHandle_t handle_of(CudaDevice& device) {
  static Mutex mutex;
  static auto* const handles FLEET_PT_GUARDED_BY(mutex) = new std::map<int, cublasLtHandle_t>;
  const MutexLock lock(mutex);
  cublasLtHandle_t& handle = (*handles)[device.index()];
  if (!handle) check_gemm(cublasLtCreate(&handle), "starting cuBLASLt on " + device.name());
  return handle;
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      throw Error(ErrorCode::kUnsupported, std::string("no cuBLASLt kernel for ") + name_of(dtype));
  }
}

template <typename T, cublasStatus_t (*destroy)(T)>
struct Destroy {
  void operator()(T object) const { destroy(object); }
  using pointer = T;
};
using Description = std::unique_ptr<void, Destroy<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using MatrixLayout =
    std::unique_ptr<void, Destroy<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<void, Destroy<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

template <typename T>
void set(const Description& description, cublasLtMatmulDescAttributes_t name, T value) {
  check_gemm(cublasLtMatmulDescSetAttribute(description.get(), name, &value, sizeof(value)),
             "describing a product");
}
template <typename T>
void set(const MatrixLayout& layout, cublasLtMatrixLayoutAttribute_t name, T value) {
  check_gemm(cublasLtMatrixLayoutSetAttribute(layout.get(), name, &value, sizeof(value)),
             "describing a matrix");
}
template <typename T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name, T value) {
  check_gemm(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof(value)),
             "preferences of a product");
}

// cuBLASLt sees a row-major matrix as the column-major matrix of its transpose, so it computes dᵀ =
// bᵀ aᵀ with b first, and a matrix stored as [height, width] has width rows.
// stride: elements from one stored row to the next; 0: rows without gaps.
MatrixLayout matrix(const Product& p, DType dtype, int64_t height, int64_t width,
                    int64_t stride = 0) {
  if (stride == 0) stride = width;
  cublasLtMatrixLayout_t made = nullptr;
  check_gemm(cublasLtMatrixLayoutCreate(&made, type_of(dtype), width, height, stride), p.text());
  MatrixLayout layout(made);
  if (p.batch > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(p.batch));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, height * stride);
  }
  return layout;
}

bool is_gelu(const Product& p) {
  return p.epilogue == Product::kGelu || p.epilogue == Product::kGeluGradient;
}

cublasLtEpilogue_t epilogue_of(const Product& p, bool bias) {
  switch (p.epilogue) {
    case Product::kNone:
      break;
    case Product::kAddBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Product::kSumA:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Product::kGelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Product::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

Description describe(const Product& p, bool tensor_op_math, const ProductArguments& arguments) {
  const bool fast = p.dtype == DType::kFloat32 && tensor_op_math;
  cublasLtMatmulDesc_t made = nullptr;
  check_gemm(cublasLtMatmulDescCreate(
                 &made, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
             p.text());
  Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.epilogue == Product::kNone) return description;
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p, arguments.bias != nullptr));
  if (arguments.bias) {
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, arguments.bias);
    set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(p.dtype)));
  }
  if (is_gelu(p)) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, arguments.before);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.columns);
  }
  return description;
}

class ProductKernel : public Kernel {
 public:
  ProductKernel(CudaDevice& device, const Product& p, const ProductArguments& arguments)
      : handle_(handle_of(device)),
        arguments_(arguments),
        text_(p.text()),
        has_epilogue_(p.epilogue != Product::kNone),
        description_(describe(p, device.cuda_options().tensor_op_math, arguments)),
        adds_(p.adds),
        a_(p.transpose_a ? matrix(p, p.dtype, p.depth, p.rows, p.a_stride)
                         : matrix(p, p.dtype, p.rows, p.depth, p.a_stride)),
        b_(p.transpose_b ? matrix(p, p.dtype, p.columns, p.depth)
                         : matrix(p, p.dtype, p.depth, p.columns)),
        d_(matrix(p, p.result_type(), p.rows, p.columns, p.d_stride)) {}

  // Chooses cuBLASLt's algorithm. Returns whether there is one.
  bool choose() {
    cublasLtMatmulPreference_t made = nullptr;
    check_gemm(cublasLtMatmulPreferenceCreate(&made), text_);
    const Preference preference(made);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    // A product in parts adds them in float32, not in its result's type.
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    // A Plan aligns its variables to 64 bytes, less than cuBLASLt assumes.
    for (auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(preference, name, uint32_t{64});
    }
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), b_.get(), a_.get(), d_.get(),
                                       d_.get(), preference.get(), 1, &result, &count);
    // Some epilogues of some sizes are "invalid" instead of "not supported".
    const bool optional = status == CUBLAS_STATUS_INVALID_VALUE && has_epilogue_;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && !optional) check_gemm(status, text_);
    algorithm_ = result.algo;
    workspace_bytes_ = result.workspaceSize;
    return status == CUBLAS_STATUS_SUCCESS && count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
  }

  void run(Stream& stream) override {
    const float one = 1, beta = adds_ ? 1 : 0;
    check_gemm(
        cublasLtMatmul(handle_, description_.get(), &one, arguments_.b, b_.get(), arguments_.a,
                       a_.get(), &beta, arguments_.d, d_.get(), arguments_.d, d_.get(), &algorithm_,
                       arguments_.workspace, workspace_bytes_, stream_of(stream)),
        text_);
  }

 private:
  cublasLtHandle_t handle_;
  ProductArguments arguments_;
  std::string text_;
  bool has_epilogue_;
  Description description_;
  bool adds_;
  MatrixLayout a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_bytes_ = 0;
};

// Whether cuBLASLt may compute the epilogue: gelu needs rows of whole 16 bytes, and a bias of the
// product's type.
bool fits_epilogue(const Product& p, const ProductArguments& arguments) {
  if (!is_gelu(p)) return true;
  return p.columns % 8 == 0 && (!arguments.bias || arguments.bias_type == p.dtype);
}

// Runs the product, then gelu or its gradient.
std::unique_ptr<Kernel> with_own_gelu(Device& device, const Product& p,
                                      ProductArguments arguments) {
  const bool forward = p.epilogue == Product::kGelu;
  const ChannelRows image{
      .dtype = p.dtype, .rows = p.rows, .channels = p.columns, .stored = p.columns};
  Product plain = p;
  plain.epilogue = Product::kNone;
  ProductArguments products = arguments;
  if (forward) products.d = arguments.before;
  products.bias = products.before = nullptr;
  const std::shared_ptr<Kernel> product = make_product(device, plain, products);
  return make_kernel([=, dtype = p.dtype, count = p.rows * p.columns](Stream& stream) {
    product->run(stream);
    const cudaStream_t handle = stream_of(stream);
    if (!forward) {
      gelu_gradient_after(count, dtype, arguments.before, arguments.d, handle);
      return;
    }
    if (arguments.bias) {
      add_bias(image, arguments.before, arguments.bias, arguments.bias_type, handle);
    }
    gelu_after(count, dtype, arguments.before, arguments.d, handle);
  });
}

// Runs the product first, then its epilogue.
std::unique_ptr<Kernel> with_own_epilogue(std::shared_ptr<Kernel> plain, const Product& p,
                                          const ProductArguments& arguments) {
  const bool adds = p.epilogue == Product::kAddBias;
  const int64_t rows = adds ? p.batch * p.rows : p.depth, channels = adds ? p.columns : p.rows;
  const ChannelRows image{.dtype = p.dtype, .rows = rows, .channels = channels, .stored = channels};
  return make_kernel([plain = std::move(plain), image, adds, dtype = p.dtype,
                      arguments](Stream& stream) {
    plain->run(stream);
    if (adds) {
      add_bias(image, arguments.d, arguments.bias, dtype, stream_of(stream));
    } else {
      sum_rows(image, arguments.a, arguments.bias, dtype, arguments.workspace, stream_of(stream));
    }
  });
}

}  // namespace

std::string Product::text() const {
  std::ostringstream out;
  out << "product of " << name_of(dtype) << " [" << batch << ", " << rows << ", " << depth << "] ["
      << batch << ", " << depth << ", " << columns << "]";
  return out.str();
}

size_t workspace_of(const Product& p) {
  if (p.epilogue != Product::kSumA) return kWorkspace;
  return std::max(kWorkspace, sum_rows_workspace({p.dtype, p.depth, p.rows, p.rows}));
}

std::unique_ptr<Kernel> make_product(Device& device, const Product& product,
                                     const ProductArguments& arguments) {
  FLEET_CHECK(product.epilogue != Product::kSumA || (product.transpose_a && product.batch == 1),
              "sums of a matrix that is not transposed");
  FLEET_CHECK(product.epilogue == Product::kNone || (!product.adds && !product.result),
              "an epilogue of a product that is added or of another type");
  FLEET_CHECK(!is_gelu(product) || (product.batch == 1 && !product.d_stride && arguments.before),
              "gelu after a product whose rows have gaps, or without its own input");
  if (fits_epilogue(product, arguments)) {
    auto kernel = std::make_unique<ProductKernel>(cuda_device(device), product, arguments);
    if (kernel->choose()) return kernel;
  }
  if (is_gelu(product)) return with_own_gelu(device, product, arguments);
  if (product.epilogue != Product::kNone) {
    Product plain = product;
    plain.epilogue = Product::kNone;
    return with_own_epilogue(make_product(device, plain, arguments), product, arguments);
  }
  throw Error(ErrorCode::kUnsupported, "cuBLASLt has no algorithm on this GPU", product.text(),
              "use another type");
}

}  // namespace fleet::cuda
