// Parts of exporters that several operations share.
#pragma once

#include <string>

#include "onnx/exporter.h"

namespace fleet {

// Elements start..end-1 along `axis`.
std::string onnx_slice(OnnxGraph& graph, const std::string& x, int64_t axis, int64_t start,
                       int64_t end);
// As a formula: ONNX has Gelu only from operator set 20 on. output: "" for a new name.
std::string onnx_gelu(OnnxGraph& graph, const std::string& x, bool approximate,
                      const std::string& output = {});

}  // namespace fleet
