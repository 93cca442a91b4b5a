#include "backend/cpu/runtime_product.h"

namespace fleet::cpu {

RuntimeProduct::RuntimeProduct(Free free, int64_t size, int64_t other, const Matrix& a,
                               const Matrix& b, const Matrix& c, bool adds)
    : free_(free), first_(size), second_(other), a_(a), b_(b), c_(c) {
  const int64_t unknown = DNNL_RUNTIME_DIM_VAL;
  const int64_t rows = free == kRows ? unknown : size, columns = free == kRows ? size : other;
  const int64_t depth = free == kRows ? other : unknown;
  dnnl::primitive_attr attributes;  // copies of user_scratchpad() would be the same object
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (adds) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc description(desc(a, rows, depth), desc(b, depth, columns),
                                       desc(c, rows, columns));
  const dnnl::matmul::primitive_desc chosen(description, attributes, engine());
  FLEET_CHECK(scratchpad_bytes(chosen) == 0, "a product that needs a scratchpad");
  primitive_ = dnnl::matmul(chosen);
}

dnnl::memory::desc RuntimeProduct::desc(const Matrix& matrix, int64_t rows, int64_t columns) const {
  return {{rows, columns}, type_of(matrix.dtype), {matrix.strides[0], matrix.strides[1]}};
}

void RuntimeProduct::run(int64_t size, const void* a, const void* b, void* c) {
  if (size == 0) return;
  if (size != size_) {
    const int64_t rows = free_ == kRows ? size : first_;
    const int64_t columns = free_ == kRows ? first_ : second_;
    const int64_t depth = free_ == kRows ? second_ : size;
    memories_.clear();
    memories_.emplace_back(desc(a_, rows, depth), engine(), nullptr);
    memories_.emplace_back(desc(b_, depth, columns), engine(), nullptr);
    memories_.emplace_back(desc(c_, rows, columns), engine(), nullptr);
    size_ = size;
  }
  memories_[0].set_data_handle(const_cast<void*>(a));
  memories_[1].set_data_handle(const_cast<void*>(b));
  memories_[2].set_data_handle(c);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memories_[0].get()},
                                       {DNNL_ARG_WEIGHTS, memories_[1].get()},
                                       {DNNL_ARG_DST, memories_[2].get()}};
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream().get(), 3, arguments);
  if (status != dnnl_success) {
    throw_translated(dnnl::error(status, "could not execute a primitive"), "a product of matrices");
  }
}

}  // namespace fleet::cpu
