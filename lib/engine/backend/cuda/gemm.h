// Matrix products with cuBLASLt. Enqueued on the kernel's stream, may be recorded in a CUDA graph,
// bitwise reproducible.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/kernel.h"

namespace fleet::cuda {

// d[batch, rows, columns] = a[batch, rows, depth] b[batch, depth, columns], all row-major, summed
// in float32 (in TF32 if CudaOptions::tensor_op_math is set). a and b have one type, and d the same
// if it has none of its own.
struct Product {
  int64_t batch = 1, rows = 0, columns = 0, depth = 0;
  bool transpose_a = false, transpose_b = false;  // stored as [depth, rows], [columns, depth]
  DType dtype = DType::kFloat32;
  enum Epilogue {
    kNone,
    kAddBias,  // d += bias[columns]
    kSumA,     // bias[rows] = the sums of a over depth (a transposed): the gradient of the bias
    // gelu is the form with tanh:
    kGelu,          // before = the product + bias[columns] (which may be absent); d = gelu(before)
    kGeluGradient,  // d = the product * gelu'(before)
  } epilogue = kNone;
  std::optional<DType> result = {};  // the type of d, float32 or that of a; not with an epilogue
  bool adds = false;                 // d += the product; not with an epilogue
  // Elements from one row to the next of a and d as they are stored; 0: rows without gaps.
  int64_t a_stride = 0, d_stride = 0;

  DType result_type() const { return result.value_or(dtype); }
  std::string text() const;
};

struct ProductArguments {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  void* bias = nullptr;  // read or written by the epilogue, with the product's type
  // kGelu: the bias may have another type, which takes a separate kernel.
  DType bias_type = DType::kFloat32;
  void* before = nullptr;  // kGelu, kGeluGradient: stored like d
  void* workspace = nullptr;
};

size_t workspace_of(const Product& product);  // bytes
// kUnsupported if cuBLASLt has no algorithm. An epilogue that it lacks for this product becomes a
// separate kernel after it.
std::unique_ptr<Kernel> make_product(Device& device, const Product& product,
                                     const ProductArguments& arguments);

}  // namespace fleet::cuda
