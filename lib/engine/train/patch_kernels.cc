#include "train/patch_kernels.h"

#include <cmath>
#include <utility>

#include "train/resize_taps.h"

namespace fleet {
namespace {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = std::vector<double>(static_cast<size_t>(rows * columns));

  double& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * columns + column)];
  }
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

// Resizes `in` values to `out`.
Matrix resize_matrix(int64_t in, int64_t out) {
  Matrix matrix{out, in};
  const std::vector<Taps> rows = antialiased_taps(in, out);
  for (int64_t row = 0; row < out; ++row) {
    const Taps& taps = rows[static_cast<size_t>(row)];
    for (size_t i = 0; i < taps.places.size(); ++i) {
      matrix.at(row, taps.places[i]) += taps.weights[i];
    }
  }
  return matrix;
}

Matrix transposed(const Matrix& a) {
  Matrix t{a.columns, a.rows};
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t column = 0; column < a.columns; ++column) t.at(column, row) = a.at(row, column);
  }
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns};
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t column = 0; column < b.columns; ++column) {
        c.at(row, column) += a.at(row, k) * b.at(k, column);
      }
    }
  }
  return c;
}

// a^-1 b of a positive definite a, by elimination with the largest pivot.
Matrix solved(Matrix a, Matrix b) {
  const int64_t size = a.rows;
  for (int64_t k = 0; k < size; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < size; ++row) {
      if (std::abs(a.at(row, k)) > std::abs(a.at(pivot, k))) pivot = row;
    }
    for (int64_t column = 0; column < size; ++column) {
      std::swap(a.at(k, column), a.at(pivot, column));
    }
    for (int64_t column = 0; column < b.columns; ++column) {
      std::swap(b.at(k, column), b.at(pivot, column));
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row == k) continue;
      const double factor = a.at(row, k) / a.at(k, k);
      for (int64_t column = k; column < size; ++column) {
        a.at(row, column) -= factor * a.at(k, column);
      }
      for (int64_t column = 0; column < b.columns; ++column) {
        b.at(row, column) -= factor * b.at(k, column);
      }
    }
  }
  for (int64_t row = 0; row < size; ++row) {
    for (int64_t column = 0; column < b.columns; ++column) b.at(row, column) /= a.at(row, row);
  }
  return b;
}

// Of a matrix of full rank: [columns, rows].
Matrix pseudo_inverse(const Matrix& a) {
  const Matrix t = transposed(a);
  if (a.rows >= a.columns) return solved(product(t, a), t);
  return transposed(solved(product(a, t), a));
}

}  // namespace

// The resize of a patch is that of its rows and of its columns, and so is its pseudo-inverse.
std::vector<float> resampled_kernels(std::span<const float> kernels, const PositionGrid& from,
                                     const PositionGrid& to) {
  const Matrix rows = pseudo_inverse(resize_matrix(from.height, to.height));
  const Matrix columns = pseudo_inverse(resize_matrix(from.width, to.width));
  const Matrix rows_by_out = transposed(rows);
  const auto size = static_cast<size_t>(from.height * from.width);
  std::vector<float> resampled;
  resampled.reserve(kernels.size() / size * static_cast<size_t>(to.height * to.width));
  Matrix kernel{from.height, from.width};
  for (size_t first = 0; first + size <= kernels.size(); first += size) {
    for (size_t i = 0; i < size; ++i) kernel.values[i] = kernels[first + i];
    const Matrix changed = product(rows_by_out, product(kernel, columns));
    for (const double value : changed.values) resampled.push_back(static_cast<float>(value));
  }
  return resampled;
}

}  // namespace fleet
