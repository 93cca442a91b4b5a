// A tokenizer.json or a rank file, and a text for it.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "text/tokenizer.h"

// The number of bytes of the text, the text, the file.
FLEET_FUZZ(tokenizer) {
  using fleet::text::Tokenizer;
  const size_t size = fleet::fuzz::take_byte(&bytes);
  const std::string text(bytes.substr(0, size));
  const std::string_view file = bytes.substr(std::min(size, bytes.size()));
  fleet::fuzz::attempt([&] {
    Tokenizer tokenizer = file.starts_with('{')
                              ? Tokenizer::from_json(file, "fuzz")
                              : Tokenizer::from_ranks(file, {"\\S+|\\s+", {}}, "fuzz");
    tokenizer.disable_padding();  // a file may ask for 16 million ids
    std::vector<uint32_t> ids = tokenizer.encode(text, true);
    tokenizer.encode_as_text(text, ids);
    for (const uint32_t id : ids) {
      fleet::fuzz::require(id < (1u << 23), "an id is one that a file may have");
    }
    fleet::fuzz::use(static_cast<unsigned>(tokenizer.decode(ids, false).size()));
  });
}
