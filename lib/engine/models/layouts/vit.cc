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

// Rows and columns of the patches that a network has by default.
int64_t patch_of_network(const std::string& network) {
  const int64_t named = number_behind("_patch", network);
  return named > 0 ? named : number_behind("vit_b_", network) + number_behind("vit_l_", network);
}

std::map<std::string, std::string> patch_key(const std::string& network, int64_t patch) {
  if (patch <= 0 || patch == patch_of_network(network)) return {};
  return {{"patch", std::to_string(patch)}};
}

// Such as "vit_small_patch32_224", read as vit_small_patch16_224.
std::map<std::string, std::string> patch_of_architecture(const std::string& network,
                                                         const std::string& architecture) {
  return patch_key(network, number_behind("_patch", architecture));
}

std::map<std::string, std::string> patch_of_file(const std::string& network,
                                                 const TensorShapes& file) {
  for (const auto& [name, shape] : file) {
    const bool patches =
        name.ends_with("patch_embed.proj.weight") || name.ends_with("conv_proj.weight");
    if (patches && shape.rank() == 4) return patch_key(network, shape[3]);
  }
  return {};
}

}  // namespace

FLEET_WEIGHT_LAYOUT(vit) {
  def.adamw = true;
  def.has = [](const std::string& network) {
    return network.starts_with("vit_") || network.starts_with("deit");
  };
  // Files of other sizes: the record has the size of their images, and model.patch that of their
  // patches.
  def.timm_networks = {{"vit_tiny_patch16_224", "vit_tiny_patch16_224"},
                       {"vit_small_patch16_224", "vit_small_patch16_224"},
                       {"vit_base_patch16_224", "vit_base_patch16_224"},
                       {"deit_base_patch16_224", "deit_base_patch16_224"},
                       {"deit_base_distilled_patch16_224", "deit_base_distilled_patch16_224"},
                       {"deit3_small_patch16_224", "deit3_small_patch16_224"},
                       {"deit3_base_patch16_224", "deit3_base_patch16_224"},
                       {"vit_small_patch8_224", "vit_small_patch16_224"},
                       {"vit_small_patch32_224", "vit_small_patch16_224"},
                       {"vit_small_patch32_384", "vit_small_patch16_224"},
                       {"vit_base_patch8_224", "vit_base_patch16_224"},
                       {"vit_base_patch16_224", "vit_b_16"},
                       {"vit_base_patch32_224", "vit_b_32"},
                       {"vit_large_patch16_224", "vit_l_16"},
                       {"vit_large_patch32_224", "vit_l_32"},
                       {"vit_tiny_patch16_384", "vit_tiny_patch16_224"},
                       {"vit_small_patch16_384", "vit_small_patch16_224"},
                       {"vit_base_patch16_384", "vit_base_patch16_224"},
                       {"vit_base_patch16_384", "vit_b_16"},
                       {"vit_base_patch32_384", "vit_b_32"},
                       {"vit_base_patch32_448", "vit_b_32"},
                       {"vit_large_patch16_384", "vit_l_16"},
                       {"vit_large_patch32_384", "vit_l_32"},
                       {"vit_large_patch14_224", "vit_l_16"},
                       {"deit_base_patch16_224", "vit_b_16"},
                       {"deit_base_patch16_384", "deit_base_patch16_224"},
                       {"deit_base_distilled_patch16_384", "deit_base_distilled_patch16_224"},
                       {"deit3_small_patch16_384", "deit3_small_patch16_224"},
                       {"deit3_base_patch16_384", "deit3_base_patch16_224"}};
  def.timm = renamed_to_timm(vit_in_timm);
  def.respelled = respelled_vit;
  def.model_keys = patch_of_architecture;
  def.keys_of_file = patch_of_file;
}

}  // namespace fleet
