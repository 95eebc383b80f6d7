// The programs of the GPU. Colours are those of `citysplat render` (src/view/shading.cpp): the same base colours,
// the same light, the same haze.

const COMMON = `#version 300 es
precision highp float; precision highp int; precision highp usampler2D;
uniform bool parallel;          // rays are parallel: an ortho view
uniform vec3 forward;           // of the camera
vec3 linear(vec3 display) { return display * display; }
vec3 sky(vec3 direction) {
  float up = clamp(direction.z * 2.0 + 0.25, 0.0, 1.0);
  return mix(linear(vec3(223.0, 230.0, 236.0) / 255.0), linear(vec3(143.0, 176.0, 208.0) / 255.0), up);
}
vec3 ramp(float t) {
  vec3 stops[6] = vec3[6](vec3(53.0, 42.0, 107.0), vec3(47.0, 92.0, 143.0), vec3(37.0, 132.0, 142.0),
                          vec3(61.0, 171.0, 121.0), vec3(155.0, 203.0, 74.0), vec3(251.0, 227.0, 58.0));
  float at = clamp(t, 0.0, 1.0) * 5.0;
  int i = min(int(at), 4);
  return mix(linear(stops[i] / 255.0), linear(stops[i + 1] / 255.0), at - float(i));
}
`;
// Where a point lies on the screen, from the eye. Depths are larger by a share of the distance.
const PROJECT = `
uniform mat3 cameraFromWorld;
uniform vec4 projection;        // x, y, and two of depth
vec4 project(vec3 point, float behind) {
  vec3 p = cameraFromWorld * point;
  vec2 across = p.xy * projection.xy;
  if (parallel) return vec4(across, (-p.z + 10.0 * behind) * projection.z + projection.w, 1.0);
  return vec4(across, -p.z * projection.z + projection.w / (1.0 + behind), -p.z);
}
`;

// One triangle around each disc. The columns of a cube lie in a texture as they came over the wire; a vertex reads
// those of its disc.
export const DISC_VERTEX = `${COMMON}${PROJECT}
uniform usampler2D columns;
uniform sampler2D classColours;
uniform usampler2D groundIndex; // number of each square of 64 m, from 1 on; 0: there is none
uniform usampler2D groundCells; // 16 x 16 cells of each square: its input, and above it its generation
uniform sampler2D valueColours; // of inputs or of generations
uniform vec2 eyeOnGround;       // from the corner of the first square
uniform float valueScale;       // of intensities that are distances: 65535 of them are so many times the ramp
uniform ivec4 wideColumns;      // words at which x, y, z and normal begin
uniform ivec3 halfColumns;      // half words at which radius, label and intensity begin
uniform vec3 corner;            // of the cube, from the eye
uniform float unit;             // metres of one step
uniform float leastRadius;      // of a disc at a distance of one metre
uniform int colouring;          // as COLOURINGS has them
uniform bool points;            // returns of a scan, which face the eye
uniform float behind;           // share of the distance by which depths are larger than they are
uniform float sink;             // share of the radius by which discs lie deeper: what is small is seen on what is large
out vec3 fromEye; out vec2 onDisc;
flat out vec3 normal; flat out vec3 base;

uint word(int i) { return texelFetch(columns, ivec2(i & 1023, i >> 10), 0).r; }
uint halfWord(int i) { return (word(i >> 1) >> ((i & 1) * 16)) & 0xffffu; }
float steps(uint v) { return float(int(v << 8) >> 8); }
vec3 unpackNormal(uint p) {
  vec2 e = vec2(float(int(p << 16) >> 16), float(int(p) >> 16)) / 32767.0;
  float z = 1.0 - abs(e.x) - abs(e.y);
  if (z < 0.0) e = (1.0 - abs(e.yx)) * vec2(e.x < 0.0 ? -1.0 : 1.0, e.y < 0.0 ? -1.0 : 1.0);
  return normalize(vec3(e, z));
}
uint onGround(vec2 at) {
  ivec2 cell = ivec2(floor(at / 4.0)), square = cell >> 4;
  if (any(lessThan(square, ivec2(0))) || any(greaterThanEqual(square, textureSize(groundIndex, 0)))) return 0xffffffffu;
  int number = int(texelFetch(groundIndex, square, 0).r) - 1;
  if (number < 0) return 0xffffffffu;
  return texelFetch(groundCells, 16 * ivec2(number & 127, number >> 7) + (cell & 15), 0).r;
}
void main() {
  int disc = gl_VertexID / 3, vertex = gl_VertexID - 3 * disc;
  vec3 centre = corner + unit * vec3(steps(word(wideColumns.x + disc)), steps(word(wideColumns.y + disc)),
                                     steps(word(wideColumns.z + disc)));
  normal = unpackNormal(word(wideColumns.w + disc));
  float radius = max(unit * float(halfWord(halfColumns.x + disc)), leastRadius * (parallel ? 1.0 : length(centre)));
  vec3 facing = !points ? normal : parallel ? forward : normalize(centre);
  vec3 u = normalize(cross(facing, abs(facing.z) < 0.8 ? vec3(0.0, 0.0, 1.0) : vec3(1.0, 0.0, 0.0)));
  onDisc = vertex == 0 ? vec2(0.0, 2.0) : vec2(vertex == 1 ? -1.7320508 : 1.7320508, -1.0);
  fromEye = centre + radius * (onDisc.x * u + onDisc.y * cross(facing, u));
  if (colouring == 0) {
    int label = int(halfWord(halfColumns.y + disc));
    base = linear(texelFetch(classColours, ivec2(label & 255, label >> 8), 0).rgb);
  } else if (colouring == 2) {
    base = vec3(float(halfWord(halfColumns.z + disc)) / 65535.0);
  } else if (colouring == 4 || colouring == 5) {
    uint cell = onGround(eyeOnGround + centre.xy);
    int value = int(colouring == 4 ? cell & 0xffffu : cell >> 16);
    base = linear(texelFetch(valueColours, ivec2(value & 255, value >> 8), 0).rgb);
  } else if (colouring == 6) {
    base = ramp(float(halfWord(halfColumns.z + disc)) * valueScale);
  }
  gl_Position = project(fromEye, behind + sink * radius / (parallel ? 10.0 : max(length(centre), 0.5)));
}`;

export const DISC_FRAGMENT = `${COMMON}
uniform int colouring;
uniform vec2 heights;           // low and high, from the eye
uniform float farDistance, brightness;
uniform bool points;
uniform vec4 tint;              // instead of the colour, where its last is 1
in vec3 fromEye; in vec2 onDisc;
flat in vec3 normal; flat in vec3 base;
out vec4 colour;
void main() {
  if (dot(onDisc, onDisc) >= 1.0) discard;
  float range = length(fromEye);
  vec3 direction = parallel ? forward : fromEye / range;
  vec3 n = dot(normal, direction) > 0.0 && !points ? -normal : normal;
  vec3 c = base;
  if (colouring == 1) c = ramp((fromEye.z - heights.x) / max(heights.y - heights.x, 1e-3));
  if (tint.a > 0.0) c = tint.rgb;
  if (colouring == 3 && tint.a == 0.0) {
    c = linear(0.5 + 0.5 * n);
  } else if (!points) {
    float sun = max(0.0, dot(n, vec3(0.48, -0.36, 0.8)));
    c *= 0.30 + 0.25 * (0.5 + 0.5 * n.z) + 0.25 * abs(dot(n, direction)) + 0.35 * sun;
  }
  if (!parallel) c = mix(c, sky(direction), 1.0 - exp(-range / (farDistance * 0.6)));
  colour = vec4(brightness * sqrt(clamp(c, 0.0, 1.0)), 1.0);
}`;

// Edges of boxes.
export const LINE_VERTEX = `${COMMON}${PROJECT}
layout(location = 0) in vec3 fromEye;
void main() { gl_Position = project(fromEye, 0.0); }`;
export const LINE_FRAGMENT = `${COMMON}
out vec4 colour;
void main() { colour = vec4(1.0, 0.84, 0.29, 1.0); }`;

// One triangle that covers the picture.
export const PICTURE_VERTEX = `${COMMON}
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }`;

// The sky where nothing is, and darker pixels where something lies behind its neighbours.
export const PICTURE_FRAGMENT = `${COMMON}
uniform sampler2D picture, depths;
uniform mat3 worldFromCamera;
uniform vec2 origin, size;      // of the part of the picture that this camera has
uniform vec2 tangents, depthTerms;
uniform bool edges;
out vec4 colour;
vec3 ray(vec2 pixel) { return vec3((2.0 * pixel / size - 1.0) * tangents, -1.0); }
bool isEmpty(ivec2 at) { return texelFetch(depths, at, 0).r >= 1.0; }
float logRange(ivec2 at) {
  float d = texelFetch(depths, at, 0).r;
  if (d >= 1.0) return log2(1e6);
  if (parallel) return log2(max((2.0 * d - 1.0 - depthTerms.y) / depthTerms.x, 0.1));
  return log2(depthTerms.y / (2.0 * d - 1.0 + depthTerms.x) * length(ray(vec2(at) - origin + 0.5)));
}
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  if (isEmpty(at)) {
    vec3 direction = parallel ? forward : normalize(worldFromCamera * ray(gl_FragCoord.xy - origin));
    colour = vec4(sqrt(sky(direction)), 1.0);
    return;
  }
  vec3 c = texelFetch(picture, at, 0).rgb;
  if (edges) {
    float here = logRange(at), behind = 0.0;
    ivec2 first = ivec2(origin), last = ivec2(origin + size) - 1;
    ivec2 steps[4] = ivec2[4](ivec2(1, 0), ivec2(-1, 0), ivec2(0, 1), ivec2(0, -1));
    for (int i = 0; i < 4; i++) {
      ivec2 next = at + steps[i];
      if (any(lessThan(next, first)) || any(greaterThan(next, last))) continue;
      behind += clamp(here - logRange(next) - 0.01, 0.0, 0.5);
    }
    c *= exp2(-0.75 * behind);  // the square root of what render does to linear colours
  }
  colour = vec4(c, 1.0);
}`;
