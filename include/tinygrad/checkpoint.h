#pragma once
/// Checkpoints: tensors in a folder of safetensors files, from which a program goes on.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <tinygrad/export.h>
#include <tinygrad/state.h>

namespace tinygrad::nn::state {

struct CheckpointOptions {
  int keep = 2;  ///< how many there are at most; the oldest are removed once a new one is complete
};

/// Writes tensors as FOLDER/step-STEP, a folder that other programs read, too: files of safetensors, and their index. It takes its name
/// only when it is complete, so that after a crash there is the one before it. Ranks call it together; each writes some of the tensors, and
/// all throw IoError where one cannot write, which names it. Throws what safe_save() throws, and ValueError for a negative step and for
/// `keep` below 1.
TINYGRAD_EXPORT void save_checkpoint(const std::string& folder, int64_t step, const StateDict& tensors,
                                     const std::map<std::string, std::string>& metadata = {}, const CheckpointOptions& options = {});

struct Checkpoint {
  int64_t step = 0;
  std::string path = {};   ///< its folder
  StateDict tensors = {};  ///< in files, of which pages are loaded as they are used
  std::map<std::string, std::string> metadata = {};
};

/// The last one of a folder, which any number of ranks may have written; nothing if there is none. Throws IoError and FormatError for one
/// that cannot be read, CommError where ranks do not find the same.
TINYGRAD_EXPORT std::optional<Checkpoint> load_checkpoint(const std::string& folder);

}  // namespace tinygrad::nn::state
