// Parts of networks that give a class of each pixel, with torchvision's names and initialisation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/model.h"

namespace fleet {

// Maps of a backbone: the last one, and an earlier one. Both begin the names of their layers with
// "backbone.".
struct BackboneMaps {
  VarId out = kNoVar, early = kNoVar;
};
using Backbone = std::function<BackboneMaps(Network&, VarId image)>;
BackboneMaps dilated_resnet_maps(Network& network, VarId image, const std::vector<int>& blocks);
BackboneMaps dilated_mobilenet_maps(Network& network, VarId image);

// The classes of each pixel of a map: [N, num_classes, H', W'].
using SegmentationHead = std::function<VarId(Network&, VarId map, int64_t classes, double dropout)>;

// A network of `backbone` and `head`, with the outputs "pixel_logits" and, with the key aux,
// "aux_logits": [N, num_classes, H, W] for an image [N, C, H, W]. The latter comes from an FCN head
// on the early map; an evaluation does not compute it, and gives "pixel_logits" in its place.
// dropout: the head's rate by default.
void define_segmentation(ModelDef& def, const std::string& help, Backbone backbone,
                         SegmentationHead head, double dropout);
// The keys of networks without an auxiliary head, 21 classes by default.
Schema segmentation_schema();

// A convolution without bias (PyTorch's initialisation), batch norm and relu: CONV and NORM are
// their names.
VarId conv_bn_relu(Network& network, const std::string& conv, const std::string& norm, VarId x,
                   const Conv2d& layer);
// A 1 x 1 convolution with bias: the classes.
VarId pixel_classes(Network& network, const std::string& name, VarId x, int64_t classes);
// x in the height and width of `like`, bilinear.
VarId resized_like(Network& network, VarId x, VarId like);
// torchvision's FCNHead.
VarId fcn_head(Network& network, const std::string& name, VarId map, int64_t classes,
               double dropout);

}  // namespace fleet
