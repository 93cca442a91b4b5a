// Activations whose gradient is taken from their output, so that their input need not live.
#pragma once

#include <string>
#include <utility>

#include "graph/program.h"

namespace fleet {

// y = f(x), element by element. gradient: the type of the operation that makes dx of y and dy.
inline void define_activation(OpDef* def, std::string gradient) {
  def->inputs = {{"x"}};
  def->outputs = {{"y"}};
  def->precision = Precision::kGray;
  def->is_activation = true;
  def->inplace = {{0, 0}};
  def->infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def->gradient = [type = std::move(gradient)](GradientContext& context) {
    context.append(type, {context.output(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx = g(y, dy), element by element.
inline void define_activation_gradient(OpDef* def) {
  def->inputs = {{"y"}, {"dy"}};
  def->outputs = {{"dx"}};
  def->precision = Precision::kGray;
  def->inplace = {{1, 0}};
  def->infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
