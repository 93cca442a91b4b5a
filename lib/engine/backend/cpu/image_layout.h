// The layout in which convolutions process images: channels last, or blocks of channels.
#pragma once

#include <string>
#include <vector>

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// Whether an implementation of oneDNN's, by its name, multiplies with AMX.
bool uses_amx(const std::string& implementation);
// Whether it chooses such a one for convolutions of this type.
bool has_amx(DType type);

// Whether images of this type have their channels last: with AMX, for which oneDNN has kernels for
// that layout only. Its other kernels are as fast or faster in blocks of channels
// (docs/performance/cpu_families.md). $FLEET_IMAGE_LAYOUT, "channels_last" or "blocks", decides
// instead, for tests and measurements; kUsage if it is anything else.
bool prefers_channels_last(DType type);

// The candidates, preceded by channels last with this weight or any, if images of the type have
// it.
std::vector<ConvolutionLayouts> with_preferred(const Convolution& convolution,
                                               const std::optional<Layout>& weight,
                                               std::vector<ConvolutionLayouts> candidates);

}  // namespace fleet::cpu
