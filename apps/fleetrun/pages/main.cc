// Writes fleetrun's man page and shell completions. It runs during the build and is not installed.
//
//   fleetrun-pages man | bash | fish | zsh     for fleetrun, to standard output
//   fleetrun-pages man PROGRAM <help-text      for a program that prints its own help
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "pages/pages.h"

namespace fleet {

namespace {

int run(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.empty() ? "" : arguments[0];
  std::string text;
  if (kind == "man" && arguments.size() == 2) {
    const std::string help(std::istreambuf_iterator<char>(std::cin), {});
    text = man_page_of(arguments[1], help);
  } else if (kind == "man") {
    text = man_page();
  } else if (kind == "bash") {
    text = bash_completion();
  } else if (kind == "fish") {
    text = fish_completion();
  } else if (kind == "zsh") {
    text = zsh_completion();
  } else {
    std::fputs("usage: fleetrun-pages man [PROGRAM] | bash | fish | zsh\n", stderr);
    return 2;
  }
  std::cout << text;
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) { return fleet::run({argv + 1, argv + argc}); }
