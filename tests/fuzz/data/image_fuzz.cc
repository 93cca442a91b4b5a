// The image formats that have no target of their own: BMP, GIF, TIFF and WebP.
#include "tests/fuzz/pixels.h"

FLEET_FUZZ(image) {
  if (!bytes.starts_with("\xff\xd8") && !bytes.starts_with("\x89PNG")) {
    fleet::fuzz::decode_image(bytes);
  }
}
