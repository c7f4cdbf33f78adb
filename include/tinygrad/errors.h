#pragma once

#include <stdexcept>

#include <tinygrad/export.h>

namespace tinygrad {

/// The root of everything the library throws. Messages say the op, what it got, what it expects and what to do.
class TINYGRAD_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes that do not fit an op: sizes that cannot broadcast, a reshape that changes the element count.
class TINYGRAD_EXPORT ShapeError : public Error {
 public:
  using Error::Error;
};

/// A dtype that an op or a device does not take.
class TINYGRAD_EXPORT DTypeError : public Error {
 public:
  using Error::Error;
};

/// A device that is unknown, cannot be opened, or failed while running.
class TINYGRAD_EXPORT DeviceError : public Error {
 public:
  using Error::Error;
};

/// A rank that cannot be reached, or that does not take part in what the others do.
class TINYGRAD_EXPORT CommError : public Error {
 public:
  using Error::Error;
};

/// A compiler that is missing or refused a kernel.
class TINYGRAD_EXPORT CompileError : public Error {
 public:
  using Error::Error;
};

/// Memory of a device (or of the host) is used up; says how much was asked for and how much is in use.
class TINYGRAD_EXPORT OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

/// An axis or an element index out of range.
class TINYGRAD_EXPORT IndexError : public Error {
 public:
  using Error::Error;
};

/// An argument or an option with a value that is not allowed.
class TINYGRAD_EXPORT ValueError : public Error {
 public:
  using Error::Error;
};

/// The operating system refused a file or a connection; names the path and the reason.
class TINYGRAD_EXPORT IoError : public Error {
 public:
  using Error::Error;
};

/// A captured call that cannot be replayed correctly.
class TINYGRAD_EXPORT JitError : public Error {
 public:
  using Error::Error;
};

/// A file or a message whose bytes do not follow its format.
class TINYGRAD_EXPORT FormatError : public Error {
 public:
  using Error::Error;
};

/// The computation was cancelled, by ContextArgs::cancel or an interrupt check. All tensors are as they were, and the same may be computed
/// again.
class TINYGRAD_EXPORT Cancelled : public Error {
 public:
  using Error::Error;
};

/// A broken invariant of the library itself, never the user's fault; names the invariant.
class TINYGRAD_EXPORT InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace tinygrad
