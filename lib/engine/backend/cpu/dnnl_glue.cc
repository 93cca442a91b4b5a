#include "backend/cpu/dnnl_glue.h"

#include <algorithm>
#include <numeric>

namespace fleet::cpu {

const dnnl::engine& engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& stream() {
  static dnnl::stream stream(engine());
  return stream;
}

const dnnl::primitive_attr& user_scratchpad() {
  static const dnnl::primitive_attr attributes = [] {
    dnnl::primitive_attr made;
    made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return made;
  }();
  return attributes;
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return dnnl::memory::data_type::f32;
    case DType::kBFloat16:
      return dnnl::memory::data_type::bf16;
    case DType::kFloat16:
      return dnnl::memory::data_type::f16;
    case DType::kInt32:
      return dnnl::memory::data_type::s32;
    case DType::kUInt8:
      return dnnl::memory::data_type::u8;
    default:
      throw Error(ErrorCode::kUnsupported, std::string("oneDNN has no ") + name_of(dtype));
  }
}

dnnl::memory::desc desc_of(const Shape& shape, DType dtype, const std::optional<Layout>& layout) {
  const dnnl::memory::dims dims(shape.begin(), shape.end());
  if (!layout) return {dims, type_of(dtype), dnnl::memory::format_tag::any};
  FLEET_CHECK(!layout->is_opaque(), "an opaque layout (" + layout->text() + ") has no descriptor");
  FLEET_CHECK(layout->padded().rank() == shape.rank(),
              "layout " + layout->text() + " has another rank than " + shape.text());
  // oneDNN makes descriptors of named formats only; this one is filled in by hand.
  dnnl::memory::desc desc(dims, type_of(dtype), Layout::plain(shape).strides());
  dnnl_memory_desc_t& data = desc.data;
  dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  for (int d = 0; d < shape.rank(); ++d) {
    data.padded_dims[d] = layout->padded()[d];
    blocking.strides[d] = layout->strides()[d];
  }
  blocking.inner_nblks = static_cast<int>(layout->inner().size());
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    blocking.inner_idxs[i] = layout->inner()[i].axis;
    blocking.inner_blks[i] = layout->inner()[i].size;
  }
  return desc;
}

dnnl::memory::desc desc_of(const Argument& argument) {
  return desc_of(argument.shape, argument.dtype, argument.layout);
}

Layout layout_of(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  FLEET_CHECK(data.format_kind == dnnl_blocked && data.offset0 == 0 && data.extra.flags == 0,
              "oneDNN chose a format that is not a Layout");
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  std::vector<Layout::Block> inner;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    inner.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
  }
  const std::span<const int64_t> padded(data.padded_dims, data.ndims);
  return Layout::blocked(Shape(padded), {blocking.strides, blocking.strides + data.ndims}, inner);
}

Layout layout_like(const Layout& pattern, const Shape& shape) {
  FLEET_CHECK(!pattern.is_opaque() && pattern.padded().rank() == shape.rank(),
              "layout " + pattern.text() + " is not a pattern for " + shape.text());
  std::vector<int64_t> blocks(shape.rank(), 1);
  int64_t stride = 1;
  for (const Layout::Block& block : pattern.inner()) {
    blocks[block.axis] *= block.size;
    stride *= block.size;
  }
  std::vector<int> order(shape.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return pattern.strides()[a] > pattern.strides()[b]; });
  Shape padded = shape;
  std::vector<int64_t> strides(shape.rank());
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const int64_t outer = (shape[*axis] + blocks[*axis] - 1) / blocks[*axis];
    padded[*axis] = outer * blocks[*axis];
    strides[*axis] = stride;
    stride *= outer;
  }
  return Layout::blocked(padded, strides, pattern.inner());
}

std::string implementation_of(const dnnl::primitive_desc_base& desc) {
  return desc.impl_info_str();
}

bool is_reference(const dnnl::primitive_desc_base& desc) {
  return implementation_of(desc).find("ref") != std::string::npos;
}

dnnl::memory::desc argument_desc(const dnnl::primitive_desc_base& desc, int argument) {
  return desc.query_md(dnnl::query::exec_arg_md, argument);
}

size_t scratchpad_bytes(const dnnl::primitive_desc_base& desc) {
  return desc.scratchpad_desc().get_size();
}

void throw_translated(const dnnl::error& error, const std::string& what) {
  switch (error.status) {
    case dnnl_out_of_memory:
      throw Error(ErrorCode::kUnsupported, "oneDNN is out of memory", what,
                  "use a smaller batch or model");
    case dnnl_unimplemented:
      throw Error(
          ErrorCode::kUnsupported,
          std::string("oneDNN has no implementation on this processor (") + error.what() + ")",
          what, "use float32, or another configuration of the operation");
    default:
      throw Error(
          ErrorCode::kInternal,
          std::string("oneDNN: ") + error.what() + " (status " + std::to_string(error.status) + ")",
          what);
  }
}

PrimitiveKernel::PrimitiveKernel(const dnnl::primitive_desc_base& desc, void* workspace)
    : desc_(desc), implementation_(implementation_of(desc)) {
  primitive_ = translated(implementation_, [&] { return dnnl::primitive(desc.get()); });
  if (scratchpad_bytes(desc) > 0) bind(DNNL_ARG_SCRATCHPAD, workspace);
}

void PrimitiveKernel::bind(int argument, void* data) {
  memories_.emplace_back(argument_desc(desc_, argument), engine(), data);
  arguments_.push_back({argument, memories_.back().get()});
}

void PrimitiveKernel::execute() {
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream().get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    throw_translated(dnnl::error(status, "could not execute a primitive"), implementation_);
  }
}

}  // namespace fleet::cpu
