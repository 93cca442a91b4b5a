"""PyTorch's counterpart of a network of images by our name: torchvision's, or timm's where torchvision has none."""
import torchvision

# timm's spelling of our names.
OF_TIMM = {"convnext_v2": "convnextv2", "mobilenet_v4": "mobilenetv4", "efficientnet_lite": "tf_efficientnet_lite"}


def make_network(name, size=224):
    """With random weights and 1000 classes, for images of size x size. ImportError where it needs timm."""
    if hasattr(torchvision.models, name):
        keys = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
        if name.startswith("vit_"):
            keys["image_size"] = size
        return getattr(torchvision.models, name)(num_classes=1000, **keys)
    import timm

    for ours, theirs in OF_TIMM.items():
        name = name.replace(ours, theirs)
    # The positions of these belong to one size; a DINOv2 has no head of its own.
    keys = {"img_size": size} if name.startswith(("vit_", "deit")) else {}
    return timm.create_model(name, num_classes=1000, **keys)
