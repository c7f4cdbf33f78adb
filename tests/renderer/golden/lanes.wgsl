
@group(0) @binding(0) var<storage, read_write> out0: array<f32>;
override first0: i32 = 0;
@group(0) @binding(1) var<storage, read_write> in1: array<f32>;
override first1: i32 = 0;
@group(0) @binding(2) var<storage, read_write> in2: array<f32>;
override first2: i32 = 0;

@compute @workgroup_size(1, 1, 1)
fn kernel_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {
  let group_x = i32(group.x);
  let n0 = group_x * 4;
  out0[first0 + n0] = in1[first1 + n0] * in2[first2 + n0] + 1.0f;
  out0[first0 + (n0 + 1)] = in1[first1 + (n0 + 1)] * in2[first2 + (n0 + 1)] + 1.0f;
  out0[first0 + (n0 + 2)] = in1[first1 + (n0 + 2)] * in2[first2 + (n0 + 2)] + 1.0f;
  out0[first0 + (n0 + 3)] = in1[first1 + (n0 + 3)] * in2[first2 + (n0 + 3)] + 1.0f;
}
