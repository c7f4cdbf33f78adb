fn byte_at(i: i32) -> u32 {
  return 8u * (u32(i) & 3u);
}

@group(0) @binding(0) var<storage, read_write> out0: array<atomic<u32>>;
override first0: i32 = 0;
@group(0) @binding(1) var<storage, read_write> in1: array<u32>;
override first1: i32 = 0;
@group(0) @binding(2) var<storage, read_write> in2: array<u32>;
override first2: i32 = 0;

@compute @workgroup_size(1, 1, 1)
fn kernel_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {
  let group_x = i32(group.x);
  let n0 = extractBits(in1[(first1 + group_x) >> 2u], byte_at(first1 + group_x), 8u) * extractBits(in2[(first2 + group_x) >> 2u], byte_at(first2 + group_x), 8u);
  atomicAnd(&out0[(first0 + group_x) >> 2u], ~(0xffu << byte_at(first0 + group_x)));
  atomicOr(&out0[(first0 + group_x) >> 2u], (u32(extractBits(extractBits(n0, 0u, 8u) + 1u, 0u, 8u)) & 0xffu) << byte_at(first0 + group_x));
}
