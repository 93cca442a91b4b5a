// window_split, window_join, window_softmax, window_coordinates. The references roll and cut the
// image step by step, as torchvision does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/image_windows.h"
#include "tests/engine/ops/op_check.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

struct WindowCase {
  Integers grid, window, shift;
  int64_t batch = 1, heads = 1, size = 1;
  int64_t rows() const { return grid[0] * window[0]; }
  int64_t columns() const { return grid[1] * window[1]; }
  int64_t tokens() const { return window[0] * window[1]; }
  int64_t windows() const { return grid[0] * grid[1]; }
  Shape image(int64_t parts) const { return {batch, rows(), columns(), parts * heads * size}; }
  Shape part() const { return {batch * windows(), heads, tokens(), size}; }
  Attributes attributes() const { return {{"grid", grid}, {"window", window}, {"shift", shift}}; }
  Attributes with_heads() const {
    Attributes all = attributes();
    all.set("heads", heads);
    return all;
  }
};

const WindowCase kPlain{{2, 2}, {1, 2}, {0, 0}, 1, 3, 5};
const WindowCase kShifted{{2, 2}, {3, 2}, {1, 1}, 2, 2, 8};
const WindowCase kOneAxis{{1, 2}, {2, 3}, {0, 1}, 2, 1, 16};

// For each element of the parts behind one another, the element of the image.
std::vector<size_t> places_of(const WindowCase& c, int64_t parts) {
  std::vector<size_t> all;
  for (int64_t p = 0; p < parts; ++p) {
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t w = 0; w < c.windows(); ++w) {
        for (int64_t h = 0; h < c.heads; ++h) {
          for (int64_t t = 0; t < c.tokens(); ++t) {
            const int64_t y = w / c.grid[1] * c.window[0] + t / c.window[1] + c.shift[0];
            const int64_t x = w % c.grid[1] * c.window[1] + t % c.window[1] + c.shift[1];
            const int64_t row = (b * c.rows() + y % c.rows()) * c.columns() + x % c.columns();
            for (int64_t e = 0; e < c.size; ++e) {
              all.push_back(static_cast<size_t>(((row * parts + p) * c.heads + h) * c.size + e));
            }
          }
        }
      }
    }
  }
  return all;
}

void check_split(const WindowCase& c, bool gradient = true) {
  check_op({.type = "window_split",
            .attributes = c.with_heads(),
            .inputs = {{.shape = c.image(3)}},
            .reference =
                [places = places_of(c, 3)](const std::vector<Values>& in) {
                  std::vector<Values> parts(3);
                  for (size_t i = 0; i < places.size(); ++i) {
                    parts[i * 3 / places.size()].push_back(in[0][places[i]]);
                  }
                  return parts;
                },
            .tolerance = 0,
            .check_gradient = gradient});
}

void check_join(const WindowCase& c) {
  check_op({.type = "window_join",
            .attributes = c.with_heads(),
            .inputs = {{.shape = c.part()}},
            .reference =
                [places = places_of(c, 1)](const std::vector<Values>& in) {
                  Values y(places.size());
                  for (size_t i = 0; i < places.size(); ++i) y[places[i]] = in[0][i];
                  return std::vector<Values>{y};
                },
            .tolerance = 0});
}

TEST(WindowSplit, PlainAndRolled_MatchReference) {
  for (const WindowCase& c : {kPlain, kShifted, kOneAxis}) check_split(c);
}

TEST(WindowJoin, PlainAndRolled_MatchReference) {
  for (const WindowCase& c : {kPlain, kShifted, kOneAxis}) check_join(c);
}

TEST(WindowSplit, SeveralThreads_MatchReference) {
  check_split({{4, 4}, {4, 4}, {2, 2}, 2, 4, 16}, /*gradient=*/false);
}

// The region of a place in the rolled image, written as slices of it, as torchvision does.
int64_t region_of(int64_t at, int64_t size, int64_t window, int64_t shift) {
  int64_t region = 0;
  if (shift > 0 && at >= size - window) region = 1;
  if (shift > 0 && at >= size - shift) region = 2;
  return region;
}

std::vector<Values> naive_softmax(const WindowCase& c, double scale, const Values& scores,
                                  const Values& table) {
  Values y(scores.size());
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t row = 0; row < static_cast<int64_t>(scores.size()) / c.tokens(); ++row) {
    const int64_t query = row % c.tokens(), head = row / c.tokens() % c.heads;
    const int64_t window = row / c.tokens() / c.heads % c.windows();
    const auto region = [&](int64_t token) {
      return Integers{region_of(window / c.grid[1] * c.window[0] + token / c.window[1], c.rows(),
                                c.window[0], c.shift[0]),
                      region_of(window % c.grid[1] * c.window[1] + token % c.window[1], c.columns(),
                                c.window[1], c.shift[1])};
    };
    double sum = 0;
    for (int64_t key = 0; key < c.tokens(); ++key) {
      const int64_t down = query / c.window[1] - key / c.window[1] + c.window[0] - 1;
      const int64_t right = query % c.window[1] - key % c.window[1] + c.window[1] - 1;
      const double bias = table[at((down * (2 * c.window[1] - 1) + right) * c.heads + head)];
      const double mask = region(query) == region(key) ? 0 : -100;
      const int64_t i = row * c.tokens() + key;
      y[at(i)] = std::exp(scores[at(i)] * scale + bias + mask);
      sum += y[at(i)];
    }
    for (int64_t key = 0; key < c.tokens(); ++key) y[at(row * c.tokens() + key)] /= sum;
  }
  return {y};
}

OpCheck check_of_softmax(const WindowCase& c, double scale) {
  Attributes attributes = c.attributes();
  attributes.set("scale", scale);
  const int64_t offsets = (2 * c.window[0] - 1) * (2 * c.window[1] - 1);
  return {.type = "window_softmax",
          .attributes = attributes,
          .inputs = {{.shape = {c.batch * c.windows(), c.heads, c.tokens(), c.tokens()}},
                     {.shape = {offsets, c.heads}, .dtype = DType::kFloat32}},
          .reference = [=](const std::vector<Values>& in) {
            return naive_softmax(c, scale, in[0], in[1]);
          }};
}

TEST(WindowSoftmax, PlainAndRolled_MatchReference) {
  for (const WindowCase& c : {kPlain, kShifted, kOneAxis}) check_op(check_of_softmax(c, 0.5));
}

TEST(WindowSoftmax, SeveralThreads_MatchReference) {
  OpCheck check = check_of_softmax({{2, 2}, {7, 7}, {3, 3}, 2, 3, 1}, 1);
  check.check_gradient = false;
  check_op(check);
}

TEST(WindowSoftmax, OneOfTheGradients_IsThatOfBoth) {
  for (const size_t constant : {size_t{0}, size_t{1}}) {
    OpCheck check = check_of_softmax(kOneAxis, 2);
    check.inputs[constant].differentiate = false;
    check_op(check);
  }
}

TEST(WindowCoordinates, Square_AreThoseOfTorchvision) {
  const auto wanted = [](int64_t offset, int64_t window) {
    const double c = 8.0 * static_cast<double>(offset) / static_cast<double>(window - 1);
    return (c < 0 ? -1 : 1) * std::log2(1 + std::abs(c)) / 3;
  };
  const auto y = check_op({.type = "window_coordinates",
                           .attributes = {{"window", Integers{3, 8}}},
                           .inputs = {},
                           .reference =
                               [=](const std::vector<Values>&) {
                                 Values values;
                                 for (int64_t down = -2; down <= 2; ++down) {
                                   for (int64_t right = -7; right <= 7; ++right) {
                                     values.push_back(wanted(down, 3));
                                     values.push_back(wanted(right, 8));
                                   }
                                 }
                                 return std::vector<Values>{values};
                               },
                           .check_gradient = false});
  EXPECT_FLOAT_EQ(static_cast<float>(y[0].back()), static_cast<float>(std::log2(9.0) / 3));
}

// A window of one row has no other offset, and the columns count on the scale of a window of 4.
TEST(WindowCoordinates, EarlierWindow_ScalesThem) {
  const auto y = check_op({.type = "window_coordinates",
                           .attributes = {{"window", Integers{1, 2}}, {"trained", Integers{0, 4}}},
                           .inputs = {},
                           .reference =
                               [](const std::vector<Values>&) {
                                 const double one = std::log2(1 + 8.0 / 3) / 3;
                                 return std::vector<Values>{{0, -one, 0, 0, 0, one}};
                               },
                           .check_gradient = false});
  EXPECT_EQ(y[0].size(), 6u);
}

TEST(Windows, WrongSizes_AreRefused) {
  const auto refusal = [](WindowCase c, const Shape& image) {
    const OpCheck check{
        .type = "window_split",
        .attributes = c.with_heads(),
        .inputs = {{.shape = image}},
        .reference = [](const std::vector<Values>&) { return std::vector<Values>(3); }};
    EXPECT_THAT(thrown_by([&] { check_op(check); }), IsError(ErrorCode::kUsage)) << image.text();
  };
  refusal({{2, 2}, {2, 2}, {0, 0}, 1, 1, 1}, {1, 4, 5, 3});
  refusal({{2, 2}, {2, 2}, {2, 0}, 1, 1, 1}, {1, 4, 4, 3});
  refusal({{2, 2}, {2, 2}, {0, 0}, 1, 2, 1}, {1, 4, 4, 3});
  refusal({{2}, {2, 2}, {0, 0}, 1, 1, 1}, {1, 4, 4, 3});
}

}  // namespace
}  // namespace fleet
