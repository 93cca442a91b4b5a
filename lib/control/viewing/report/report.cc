// fleetrun report FOLDER: how a run went, as one HTML file; --svg: only the picture of its curves.
#include <cstdio>

#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "viewing/report/run_report.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

void write(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    return;
  }
  check_replaceable(path);
  write_file_atomically(path, content);
  std::printf("%s\n", shown_path(path).c_str());
}

int run_report(const CommandLine& line) {
  std::string folder = line.words[0];
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string svg = line.settings.text("svg"), output = line.settings.text("output");
  if (!svg.empty()) {
    check_run_folder(folder);
    write(svg, curve_charts_svg(charts_of(read_run_history(folder))));
    if (output.empty()) return 0;
  }
  const RunReport report = read_run_report(folder, line.settings.text("log_dir"));
  write(output.empty() ? folder + "/report.html" : output, report_page(report));
  return 0;
}

}  // namespace

FLEET_COMMAND(report) {
  def.syntax = {
      .program = "fleetrun report",
      .words = "FOLDER",
      .about =
          "write a report on a run as one HTML file\n"
          "FOLDER: the folder of a fleet-worker run, such as output/NAME/latest, or the log folder "
          "of a\njob whose program reports its steps. The page has the settings, curves, ranks, "
          "times,\nwarnings and the verdict; it needs no other file and no network.",
      .least = 1,
      .most = 1,
      .missing_word = "name the folder of a run, such as output/NAME/latest"};
  def.syntax.options
      .text({.key = "output", .aliases = {"o"}, .value = "FILE", .optional = true}, "",
            "write the page here; -: standard output (default: FOLDER/report.html)")
      .text(
          {.key = "svg", .value = "FILE", .optional = true}, "",
          "write a picture of the curves to this file; the page is then written only with --output")
      .text({.key = "log_dir", .value = "DIR", .optional = true}, "",
            "log folder of the run's job (default: the one that the run recorded)");
  def.run = run_report;
}

}  // namespace fleet
