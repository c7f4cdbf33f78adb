#pragma once
/// Everything.

#include <tinygrad/compile_report.h>
#include <tinygrad/context.h>
#include <tinygrad/counters.h>
#include <tinygrad/device.h>
#include <tinygrad/dtype.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>
#include <tinygrad/jit.h>
#include <tinygrad/lr_scheduler.h>
#include <tinygrad/module.h>
#include <tinygrad/nn.h>
#include <tinygrad/optim.h>
#include <tinygrad/progress.h>
#include <tinygrad/tensor.h>
#include <tinygrad/variable.h>
