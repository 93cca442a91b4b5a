// A pair of IDX files, plain or gzip.
#include "data/source.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

// The length of the file of labels, that file, the file of images.
FLEET_FUZZ(idx) {
  using namespace fleet::data;
  const size_t size = fleet::fuzz::take_byte(&bytes);
  const fleet::fuzz::MemoryFile labels(bytes.substr(0, size));
  const fleet::fuzz::MemoryFile images(bytes.substr(std::min(size, bytes.size())));
  const SourceType& type = sources().get("idx");
  fleet::ConfigTree tree;
  tree.set("images", images.path(), "fuzz");
  tree.set("labels", labels.path(), "fuzz");
  SourceContext context;
  context.classes = 10;
  const auto source = type.open(tree.validate(type.schema(true)), context);
  unsigned sum = 0;
  std::vector<uint8_t> scratch;
  for (int64_t i = 0; i < std::min<int64_t>(source->size(), 16); ++i) {
    fleet::fuzz::require(source->label(i) >= 0 && source->label(i) < 10, "a label is of a class");
    const Sample sample = source->read(i, scratch);
    fleet::fuzz::require(
        sample.bytes.size() == size_t(sample.height) * sample.width * sample.channels,
        "an image has all of its pixels");
    for (const uint8_t pixel : sample.bytes) sum += pixel;
    sum += static_cast<unsigned>(source->name(i).size());
  }
  fleet::fuzz::use(sum);
}
