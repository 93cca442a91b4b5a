#include "backend/cpu/dnnl_glue.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tensor/host.h"

namespace fleet::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

Layout of_tag(const Shape& shape, Tag tag) {
  return layout_of({{shape.begin(), shape.end()}, dnnl::memory::data_type::f32, tag});
}

TEST(DnnlGlue, LayoutsAreThoseOfTheFormats) {
  const Shape x{2, 20, 3, 5};
  EXPECT_EQ(of_tag(x, Tag::nchw), Layout::plain(x));
  EXPECT_EQ(of_tag(x, Tag::nhwc), Layout::channels_last(x));
  const Layout blocked = of_tag(x, Tag::nChw16c);
  EXPECT_EQ(blocked.text(), "aBcd16b");
  EXPECT_EQ(blocked.padded(), (Shape{2, 32, 3, 5}));
}

TEST(DnnlGlue, LayoutToDescriptorAndBack_IsTheSame) {
  const Shape shape{20, 17, 3, 3};
  for (const Tag tag : {Tag::oihw, Tag::ohwi, Tag::OIhw16i16o, Tag::OIhw16o16i, Tag::Ohwi16o,
                        Tag::OIhw8i16o2i, Tag::aBcd8b}) {
    const dnnl::memory::desc desc({20, 17, 3, 3}, dnnl::memory::data_type::f32, tag);
    const Layout layout = layout_of(desc);
    EXPECT_EQ(desc_of(shape, DType::kFloat32, layout), desc) << layout.text();
    EXPECT_EQ(layout.elements() * sizeof(float), desc.get_size()) << layout.text();
  }
}

TEST(DnnlGlue, LayoutLike_KeepsOrderAndBlocks) {
  const Shape x{2, 20, 7, 6}, y{2, 20, 4, 3};
  for (const Tag tag : {Tag::nchw, Tag::nhwc, Tag::nChw16c, Tag::nChw8c}) {
    EXPECT_EQ(layout_like(of_tag(x, tag), y), of_tag(y, tag));
    EXPECT_EQ(layout_like(of_tag({2, 20, 1, 1}, tag), x), of_tag(x, tag)) << "from one pixel";
  }
}

TEST(DnnlGlue, OpaqueLayout_IsRefused) {
  EXPECT_THROW(desc_of({4}, DType::kFloat32, Layout::opaque(4, "mask")), Error);
}

TEST(DnnlGlue, ExceptionsOfOneDnn_BecomeErrorsThatSayWhatToDo) {
  const auto thrown = [](dnnl_status_t status) {
    try {
      translated("a convolution", [status]() -> int { throw dnnl::error(status, "it failed"); });
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::kInternal, "nothing was thrown");
  };
  EXPECT_EQ(thrown(dnnl_unimplemented).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(thrown(dnnl_unimplemented).where(), "a convolution");
  EXPECT_FALSE(thrown(dnnl_unimplemented).next().empty());
  EXPECT_EQ(thrown(dnnl_out_of_memory).code(), ErrorCode::kUnsupported);
  EXPECT_NE(thrown(dnnl_out_of_memory).next().find("batch"), std::string::npos);
  EXPECT_EQ(thrown(dnnl_invalid_arguments).code(), ErrorCode::kInternal);
}

// The kernel of a reorder between two layouts, against the loop over elements.
void check_reorder(const Shape& shape, const Layout& from, const Layout& to) {
  SCOPED_TRACE(from.text() + " to " + to.text());
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, shape);
  const Op op = program.make_op(section, "reorder", {x}, {program.temporary("y")});
  std::vector<float> plain(shape.elements()), in(from.elements(), 0), out(to.elements(), 7);
  std::iota(plain.begin(), plain.end(), 1.f);
  std::vector<float> want(to.elements());
  relayout(shape, sizeof(float), Layout::plain(shape), plain.data(), from, in.data());
  relayout(shape, sizeof(float), Layout::plain(shape), plain.data(), to, want.data());
  HostDevice device;
  KernelContext context{.op = op,
                        .inputs = {{in.data(), DType::kFloat32, shape, from}},
                        .outputs = {{out.data(), DType::kFloat32, shape, to}},
                        .device = device};
  const auto stream = device.make_stream("");
  find_kernel("cpu", program, op).create(context)->run(*stream);
  EXPECT_EQ(out, want);
}

TEST(Reorder, EveryPairOfLayouts_MovesEveryElementAndZeroesPadding) {
  const Shape image{2, 20, 3, 5}, weight{20, 17, 3, 3};
  const std::vector<Tag> images = {Tag::nchw, Tag::nhwc, Tag::nChw16c, Tag::nChw8c};
  const std::vector<Tag> weights = {Tag::oihw, Tag::OIhw16i16o, Tag::OIhw16o16i, Tag::Ohwi16o,
                                    Tag::IOhw16o16i};
  for (const Tag from : images) {
    for (const Tag to : images) check_reorder(image, of_tag(image, from), of_tag(image, to));
  }
  for (const Tag from : weights) {
    for (const Tag to : weights) check_reorder(weight, of_tag(weight, from), of_tag(weight, to));
  }
}

}  // namespace
}  // namespace fleet::cpu
