// Shared definitions of activations.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

// An elementwise activation y of x that other operations may fuse through their attribute
// "activation".
struct Activation {};

struct FusesActivations {
  std::vector<std::string> types;  // activations that the operation can fuse
};

// Activations that the operation can fuse if its gradient computes their input again, instead of
// reading a mask or their result. Only some backends have such kernels.
struct RecomputesActivations {
  std::vector<std::string> types;
};

// The value that a gradient is computed from, besides dy. With kOutput the input need not stay
// live.
enum class GradientFrom { kOutput, kInput };

// y = f(x), element by element. gradient: the type of the operation that computes dx.
inline void define_activation(OpDef* def, std::string gradient,
                              GradientFrom from = GradientFrom::kOutput) {
  def->inputs = {{"x"}};
  def->outputs = {{"y"}};
  def->add_trait<MixedPrecision>().precision = Precision::kGray;
  def->add_trait<Activation>();
  def->inplace = {{0, 0}};
  def->infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def->gradient = [type = std::move(gradient), from](GradientContext& context) {
    const VarId value = from == GradientFrom::kOutput ? context.output(0) : context.input(0);
    context.append(type, {value, context.output_gradient(0)}, {context.input_gradient(0)});
  };
}

// dx = g(y, dy) or g(x, dy), element by element.
inline void define_activation_gradient(OpDef* def, GradientFrom from = GradientFrom::kOutput) {
  def->inputs = {{from == GradientFrom::kOutput ? "y" : "x"}, {"dy"}};
  def->outputs = {{"dx"}};
  def->add_trait<MixedPrecision>().precision = Precision::kGray;
  def->inplace = {{1, 0}};
  def->infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
