// Convolutions whose windows tile the image: the patches of a vision transformer, the steps between
// the stages of ConvNeXt. Patches are gathered into the workspace, which moves the image once; the
// rest is a product (gemm.h). In 16-bit types: ConvolutionProblem::takes_patches().
#pragma once

#include <memory>

#include "backend/cuda/convolution.h"

namespace fleet::cuda {

size_t patch_workspace(const ConvolutionProblem& problem);  // bytes, for each of the three

// The kernels of conv2d, conv2d_weight_grad and conv2d_data_grad, with their arguments.
std::unique_ptr<Kernel> make_patch_forward(KernelContext& context,
                                           const ConvolutionProblem& problem);
std::unique_ptr<Kernel> make_patch_weight_grad(KernelContext& context,
                                               const ConvolutionProblem& problem);
std::unique_ptr<Kernel> make_patch_data_grad(KernelContext& context,
                                             const ConvolutionProblem& problem);

}  // namespace fleet::cuda
