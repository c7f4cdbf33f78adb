
@group(0) @binding(0) var<storage, read_write> out0: array<f32>;
override first0: i32 = 0;
var<workgroup> tile0: array<f32, 16>;
@group(0) @binding(1) var<storage, read_write> in1: array<f32>;
override first1: i32 = 0;
var<workgroup> tile1: array<f32, 16>;
@group(0) @binding(2) var<storage, read_write> in2: array<f32>;
override first2: i32 = 0;

@compute @workgroup_size(4, 4, 1)
fn kernel_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {
  let group_y = i32(group.y);
  let n0 = group_y * 64;
  let group_x = i32(group.x);
  let n1 = group_x * 4;
  let item_y = i32(item.y);
  let item_x = i32(item.x);
  let n2 = n0 + n1 + item_y * 16 + item_x;
  var acc0: f32;
  let n3 = item_y * 4;
  let n4 = n3 + item_x;
  let n5 = n4 / 4;
  let n6 = n4 % 4;
  let n7 = n5 * 4 + n6;
  let n8 = n5 * 16;
  var acc1: f32;
  let n9 = n3 + 1;
  let n10 = item_x + 4;
  var acc2: f32;
  let n11 = n3 + 2;
  let n12 = item_x + 8;
  var acc3: f32;
  let n13 = n3 + 3;
  let n14 = item_x + 12;
  acc0 = 0.0f;
  acc1 = 0.0f;
  acc2 = 0.0f;
  acc3 = 0.0f;
  for (var i = 0; i < 4; i++) {
    let x0 = in1[first1 + (n0 + i * 4 + n8 + n6)];
    let x1 = in2[first2 + (n1 + i * 64 + n8 + n6)];
    workgroupBarrier();
    tile0[n7] = x0;
    workgroupBarrier();
    let x2 = tile0[n3];
    let x3 = tile0[n9];
    let x4 = tile0[n11];
    let x5 = tile0[n13];
    tile1[n7] = x1;
    workgroupBarrier();
    acc0 = acc0 + x2 * tile1[item_x];
    acc1 = acc1 + x3 * tile1[n10];
    acc2 = acc2 + x4 * tile1[n12];
    acc3 = acc3 + x5 * tile1[n14];
  }
  out0[first0 + n2] = acc0 + acc1 + (acc2 + acc3);
}
