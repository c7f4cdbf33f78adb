#pragma once
/// The commands of tg, one folder each. add_NAME() declares the command with its options; parsing the command line runs it.

namespace CLI {
class App;
}

namespace tinygrad::apps {

void add_train(CLI::App& app);
void add_compile(CLI::App& app);
void add_devices(CLI::App& app);

}  // namespace tinygrad::apps
