// Sounds by libsndfile, of which these declarations are used (https://libsndfile.github.io/libsndfile/api.html).
#include <cstdio>
#include <cstring>
#include <memory>

#include <tinygrad/errors.h>
#include <tinygrad/media.h>

#include "frontend/file_bytes.h"
#include "frontend/media/library.h"

namespace tinygrad::media {

namespace {

struct File;
struct Info {
  int64_t frames;
  int rate, channels, format, sections, seekable;
};
struct Access {
  int64_t (*size)(void*);
  int64_t (*seek)(int64_t, int, void*);
  int64_t (*read)(void*, int64_t, void*);
  int64_t (*write)(const void*, int64_t, void*);
  int64_t (*tell)(void*);
};
constexpr int to_read = 0x10;

struct SndFile {
  const DynamicLibrary library = DynamicLibrary::open({"libsndfile.so.1"});
  File* (*const open)(Access*, int, Info*, void*) = library.symbol<File*(Access*, int, Info*, void*)>("sf_open_virtual");
  int64_t (*const read)(File*, float*, int64_t) = library.symbol<int64_t(File*, float*, int64_t)>("sf_readf_float");
  int (*const close)(File*) = library.symbol<int(File*)>("sf_close");
  const char* (*const error_text)(File*) = library.symbol<const char*(File*)>("sf_strerror");

  static const SndFile& get() { return opened<SndFile>("sounds", "libsndfile1"); }
};

struct Reading {
  std::span<const std::byte> bytes;
  int64_t at = 0;
};
Reading& reading(void* user) { return *static_cast<Reading*>(user); }
int64_t size_of(void* user) { return int64_t(reading(user).bytes.size()); }
int64_t tell(void* user) { return reading(user).at; }
int64_t seek(int64_t offset, int whence, void* user) {
  Reading& r = reading(user);
  int64_t to = 0;
  const int64_t from = whence == SEEK_CUR ? r.at : whence == SEEK_END ? size_of(user) : 0;
  if (!__builtin_add_overflow(from, offset, &to) && to >= 0 && to <= size_of(user)) r.at = to;
  return r.at;
}
int64_t read_bytes(void* to, int64_t size, void* user) {
  Reading& r = reading(user);
  const int64_t count = std::clamp<int64_t>(size, 0, size_of(user) - r.at);
  if (count > 0) std::memcpy(to, r.bytes.data() + r.at, size_t(count));
  r.at += count;
  return count;
}
int64_t refuse_writing(const void*, int64_t, void*) { return 0; }

Sound decode(const frontend::FileBytes& bytes, const SoundOptions& options) {
  const SndFile& lib = SndFile::get();
  const auto fail = [&](std::string_view what) { throw FormatError(fmt::format("{}: {}", bytes.name, what)); };
  Reading from{bytes.bytes};
  Access access{size_of, seek, read_bytes, refuse_writing, tell};
  Info info{};
  const std::unique_ptr<File, int (*)(File*)> file(lib.open(&access, to_read, &info, &from), lib.close);
  if (!file) fail(fmt::format("no sound that is read: {}", lib.error_text(nullptr)));
  constexpr int most_channels = 1024, block = 1 << 14;
  if (info.channels < 1 || info.channels > most_channels || info.rate < 1) fail("a sound without channels or rate");
  const int64_t channels = info.channels;
  // What the header says of frames is not believed: samples are taken as they come.
  std::vector<float> samples, some(size_t(block) * size_t(channels));
  for (int64_t count = block; count == block;) {
    count = lib.read(file.get(), some.data(), block);
    if (count < 0) fail("the sound is damaged");
    if (int64_t(samples.size()) + count * channels > options.most_samples)
      fail(fmt::format("a sound of more than {} samples (SoundOptions::most_samples)", options.most_samples));
    samples.insert(samples.end(), some.begin(), some.begin() + count * channels);
  }
  const int64_t frames = int64_t(samples.size()) / channels;
  const auto rows = std::make_shared<std::vector<float>>(samples.size());
  for (int64_t i = 0; i < frames; ++i)
    for (int64_t c = 0; c < channels; ++c) (*rows)[size_t(c * frames + i)] = samples[size_t(i * channels + c)];
  return {Tensor::from_blob(rows->data(), {channels, frames}, {.device = "CPU"}, rows), info.rate};
}

}  // namespace

Sound load_audio(const std::string& path, const SoundOptions& options) { return decode(frontend::FileBytes::map(path), options); }

Sound decode_audio(const Tensor& bytes, const SoundOptions& options) { return decode(frontend::FileBytes::of(bytes), options); }

}  // namespace tinygrad::media
