// Encodes a text on one core; tests/bench/tokenize.sh compares with tiktoken and Hugging Face's
// tokenizers.
// Links: text base
//
//   bench_tokenize TOKENIZER TEXT [IDS]    # one document a form feed; IDS: writes uint32
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "tests/bench/times.h"
#include "text/tokenizer.h"

namespace {

int run(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: bench_tokenize TOKENIZER TEXT [IDS]\n";
    return 2;
  }
  const auto tokenizer = fleet::text::Tokenizer::load(arguments[1]);
  const std::string text = fleet::read_file(arguments[2]);
  std::vector<uint32_t> ids;
  ids.reserve(text.size() / 2);
  const double start = fleet::processor_seconds();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\f', at), text.size());
    tokenizer.encode_ordinary(std::string_view(text).substr(at, end - at), ids);
    at = end + 1;
  }
  const double seconds = fleet::processor_seconds() - start;
  std::cout << ids.size() << " ids, " << static_cast<double>(text.size()) / 1e6 / seconds
            << " MB/s\n";
  if (count > 3) {
    std::ofstream(arguments[3], std::ios::binary)
        .write(reinterpret_cast<const char*>(ids.data()),
               static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const fleet::Error& error) {
    std::cerr << error.what() << "\n";
    return fleet::exit_code_for(error.code());
  }
}
