"""JAX as a peer of bench/kernels."""
import jax
import jax.numpy as jnp

from serve import serve


def function_of(c, keys):
    kernel, size = c["kernel"], c["size"]

    def normal(*shape):
        return jax.random.normal(next(keys), shape, dtype=jnp.dtype(c.get("dtype", "float32")))
    if kernel == "matmul":
        m, n, k = size
        batch = (c["batch"],) if c.get("batch", 1) > 1 else ()
        return jnp.matmul, [normal(*batch, m, k), normal(*batch, k, n)]
    if kernel == "matvec":
        return jnp.matmul, [normal(*size), normal(size[1])]
    raise ValueError(f"has no {kernel}")


def prepare(c):
    f, inputs = function_of(c, iter(jax.random.split(jax.random.PRNGKey(1), 8)))
    f = jax.jit(f)
    return lambda: jax.block_until_ready(f(*inputs))


serve(jax.__version__, prepare)
