fn infinity() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}
fn maximum_f32(a: f32, b: f32) -> f32 {
  let same = bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b));
  return select(select(select(a + b, same, a == b), b, a < b), a, a > b);
}

@group(0) @binding(0) var<storage, read_write> out0: array<f32>;
override first0: i32 = 0;
@group(0) @binding(1) var<storage, read_write> in1: array<f32>;
override first1: i32 = 0;
var<workgroup> tile0: array<f32, 8>;
var<workgroup> tile1: array<f32, 8>;

@compute @workgroup_size(8, 1, 1)
fn kernel_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {
  let group_y = i32(group.y);
  let n0 = group_y * 32;
  let group_x = i32(group.x);
  let n1 = n0 + group_x;
  let x0 = in1[first1 + n1];
  var acc0: f32;
  let item_x = i32(item.x);
  var acc1: f32;
  var acc2: f32;
  var acc3: f32;
  let c0 = item_x == 0;
  acc0 = -infinity();
  acc1 = -infinity();
  for (var i = 0; i < 4; i++) {
    acc1 = maximum_f32(acc1, in1[first1 + (n0 + i * 8 + item_x)]);
  }
  tile0[item_x] = acc1;
  workgroupBarrier();
  for (var i = 0; i < 8; i++) {
    acc0 = maximum_f32(acc0, tile0[i]);
  }
  let y0 = x0 - acc0;
  let y1 = select(y0, 129.0f, 129.0f < y0);
  let y2 = select(y1, -152.0f, y1 < -152.0f);
  let y3 = y2 + 12583166.0f;
  let y4 = y2 - f32(bitcast<i32>(y3) + -1262485758) + 0.0f;
  let y5 = y4 * (((((y4 * 0.00015453163f + 0.0013390863f) * y4 + 0.009618083f) * y4 + 0.05550357f) * y4 + 0.2402265f) * y4 + 0.6931472f);
  let n2 = bitcast<u32>(y3);
  let n3 = n2 >> 1u;
  let y6 = (y5 + 1.0f) * bitcast<f32>(n3 << 23u) * bitcast<f32>((n2 - n3) << 23u);
  acc2 = 0.0f;
  acc3 = 0.0f;
  for (var i = 0; i < 4; i++) {
    let y7 = in1[first1 + (n0 + i * 8 + item_x)] - acc0;
    let y8 = select(y7, 129.0f, 129.0f < y7);
    let y9 = select(y8, -152.0f, y8 < -152.0f);
    let y10 = y9 + 12583166.0f;
    let y11 = y9 - f32(bitcast<i32>(y10) + -1262485758) + 0.0f;
    let y12 = ((((y11 * 0.00015453163f + 0.0013390863f) * y11 + 0.009618083f) * y11 + 0.05550357f) * y11 + 0.2402265f) * y11 + 0.6931472f;
    let n4 = bitcast<u32>(y10);
    let n5 = n4 >> 1u;
    acc3 = acc3 + (y11 * y12 + 1.0f) * bitcast<f32>(n5 << 23u) * bitcast<f32>((n4 - n5) << 23u);
  }
  tile1[item_x] = acc3;
  workgroupBarrier();
  for (var i = 0; i < 8; i++) {
    acc2 = acc2 + tile1[i];
  }
  if (c0) { out0[first0 + n1] = y6 / acc2; }
}
