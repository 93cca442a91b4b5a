// Vision transformers. Those that only timm has, such as deit, have its names here too.
#include "models/weight_layout.h"

namespace fleet {
namespace {

LayoutTensor vit_in_timm(const std::string& ours, const Shape& shape) {
  LayoutTensor tensor{ours, shape};
  replace_start({{"conv_proj.", "patch_embed.proj."},
                 {"class_token", "cls_token"},
                 {"encoder.pos_embedding", "pos_embed"},
                 {"encoder.layers.encoder_layer_", "blocks."},
                 {"encoder.ln.", "norm."},
                 {"heads.head.", "head."}},
                &tensor.name);
  if (tensor.name.starts_with("blocks.")) {
    replace_part({{".ln_1.", ".norm1."},
                  {".ln_2.", ".norm2."},
                  {".self_attention.in_proj_", ".attn.qkv."},
                  {".self_attention.out_proj.", ".attn.proj."},
                  {".mlp.0.", ".mlp.fc1."},
                  {".mlp.3.", ".mlp.fc2."}},
                 &tensor.name);
  }
  return tensor;
}

// torchvision's files before 0.13 call the layers of an MLP linear_1 and linear_2.
std::string respelled_vit(const std::string& name, const LayoutNames&,
                          const std::vector<std::string>&) {
  std::string changed = name;
  replace_part({{".mlp.linear_1.", ".mlp.0."}, {".mlp.linear_2.", ".mlp.3."}}, &changed);
  return vit_in_timm(changed, {}).name;
}

}  // namespace

FLEET_WEIGHT_LAYOUT(vit) {
  def.adamw = true;
  def.has = [](const std::string& network) {
    return network.starts_with("vit_") || network.starts_with("deit");
  };
  // Files of other sizes: the record has the size of their images.
  def.timm_networks = {{"vit_base_patch16_224", "vit_b_16"},
                       {"vit_base_patch32_224", "vit_b_32"},
                       {"vit_large_patch16_224", "vit_l_16"},
                       {"vit_large_patch32_224", "vit_l_32"},
                       {"vit_tiny_patch16_384", "vit_tiny_patch16_224"},
                       {"vit_small_patch16_384", "vit_small_patch16_224"},
                       {"vit_base_patch16_384", "vit_base_patch16_224"},
                       {"vit_base_patch16_384", "vit_b_16"},
                       {"vit_base_patch32_384", "vit_b_32"},
                       {"vit_large_patch16_384", "vit_l_16"},
                       {"vit_large_patch32_384", "vit_l_32"},
                       {"deit_base_patch16_224", "vit_b_16"},
                       {"deit_base_patch16_384", "deit_base_patch16_224"},
                       {"deit_base_distilled_patch16_384", "deit_base_distilled_patch16_224"},
                       {"deit3_small_patch16_384", "deit3_small_patch16_224"},
                       {"deit3_base_patch16_384", "deit3_base_patch16_224"}};
  def.timm = renamed_to_timm(vit_in_timm);
  def.respelled = respelled_vit;
}

}  // namespace fleet
