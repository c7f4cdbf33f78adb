// tg: results on standard output, progress and errors on standard error, exit status 0 only on success.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "commands.h"

namespace {

int run(int argc, char** argv) {
  using namespace tinygrad::apps;
  CLI::App app{"tg - train networks and look into the compiler of tinygrad.cpp", "tg"};
  app.set_version_flag("--version", "tg " TG_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this text and exit; `tg COMMAND --help` is about a command");
  app.require_subcommand(1);
  app.footer("Environment variables such as DEV (device), DEBUG (log) and NUM_CPU_THREADS: docs/environment.md");
  add_train(app);
  add_compile(app);
  add_devices(app);
  try {
    app.parse(argc, argv);  // runs the command
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw std::runtime_error("cannot write to standard output");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "tg: %s\n", e.what());
    return 1;
  }
}
