#include "tests/fuzz/pixels.h"

FLEET_FUZZ(jpeg) {
  if (bytes.starts_with("\xff\xd8")) fleet::fuzz::decode_image(bytes);
}
