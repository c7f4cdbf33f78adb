#pragma once
#include <tinygrad/render.h>

#include "renderer/kernel_info.h"
#include "target/target.h"
