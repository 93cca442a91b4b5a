#include "tensor/relayout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace fleet {
namespace {

struct Case {
  Shape shape;
  Layout layout;
};

// Layouts as kernels choose them: blocks of one axis or two, with padding, channels last, odd
// sizes.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t o : {1, 5, 16, 40}) {
    for (const int64_t i : {1, 3, 32}) {
      for (const int64_t k : {1, 3}) {
        const Shape shape{o, i, k, k};
        all.push_back({shape, Layout::channels_last(shape)});
        const int64_t os = (o + 15) / 16, is = (i + 15) / 16, block = 256 * k * k;
        all.push_back(
            {shape, Layout::blocked({os * 16, is * 16, k, k}, {is * block, block, 256 * k, 256},
                                    {{1, 16}, {0, 16}})});
        all.push_back(
            {shape, Layout::blocked({os * 16, i, k, k}, {i * k * k * 16, k * k * 16, k * 16, 16},
                                    {{0, 16}})});
        const int64_t os8 = (o + 7) / 8, is4 = (i + 3) / 4;  // OIhw2i8o2i
        all.push_back({shape, Layout::blocked({os8 * 8, is4 * 4, k, k},
                                              {is4 * k * k * 32, k * k * 32, k * 32, 32},
                                              {{1, 2}, {0, 8}, {1, 2}})});
      }
    }
  }
  all.push_back({{7, 9}, Layout::blocked({7, 9}, {1, 7}, {})});
  all.push_back({{33}, Layout::plain({33})});
  all.push_back({{}, Layout::plain({})});
  all.push_back({{3, 0}, Layout::blocked({3, 0}, {1, 3}, {})});
  return all;
}

// Places of all elements, by Layout::offset.
std::vector<int64_t> places(const Shape& shape, const Layout& layout) {
  std::vector<int64_t> all;
  std::array<int64_t, Shape::kMaxRank> index{};
  const std::span<const int64_t> indices(index.data(), static_cast<size_t>(shape.rank()));
  for (int64_t left = shape.elements(); left > 0; --left) {
    all.push_back(layout.offset(indices));
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
  return all;
}

template <typename T>
void expect_copies(const Case& given, bool back) {
  const Layout plain = Layout::plain(given.shape);
  const Layout& from = back ? given.layout : plain;
  const Layout& to = back ? plain : given.layout;
  const auto of_from = places(given.shape, from), of_to = places(given.shape, to);
  std::vector<T> source(from.elements()), want(to.elements()), got(to.elements());
  for (size_t i = 0; i < of_from.size(); ++i) {
    source[of_from[i]] = want[of_to[i]] = static_cast<T>(i + 1);
  }
  relayout(given.shape, sizeof(T), from, source.data(), to, got.data());
  EXPECT_EQ(got, want) << given.shape.text() << " " << from.text() << " to " << to.text();
}

TEST(Relayout, EveryElement_ComesWhereTheLayoutsSay) {
  for (const Case& given : cases()) {
    for (const bool back : {false, true}) {
      expect_copies<uint8_t>(given, back);
      expect_copies<uint16_t>(given, back);
      expect_copies<uint32_t>(given, back);
      expect_copies<uint64_t>(given, back);
    }
  }
}

TEST(Relayout, Rows_AreThoseOfTheWhole) {
  for (const Case& given : cases()) {
    if (given.shape.rank() == 0 || given.shape.elements() == 0) continue;
    std::vector<uint32_t> source(given.layout.elements()), whole(given.shape.elements());
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint32_t>(i);
    const Layout plain = Layout::plain(given.shape);
    const Relayout copy(given.shape, 4, given.layout, plain);
    copy.run(source.data(), whole.data());
    const int64_t row = given.shape.elements() / given.shape[0];
    ASSERT_EQ(copy.rows(), given.shape[0]);
    for (int64_t begin = 0; begin < copy.rows(); begin += Relayout::row_step()) {
      const int64_t end = std::min(copy.rows(), begin + Relayout::row_step());
      std::vector<uint32_t> rows((end - begin) * row);
      copy.run(begin, end, source.data(), rows.data());
      EXPECT_EQ(std::memcmp(rows.data(), whole.data() + begin * row, rows.size() * 4), 0)
          << given.shape.text() << " " << given.layout.text() << " rows from " << begin;
    }
  }
}

}  // namespace
}  // namespace fleet
