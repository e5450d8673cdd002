// SPDX-License-Identifier: BSL-1.0
// Compares the example engine with ONNX Runtime: the same inputs through all three PP-OCRv4 models, in several sizes.
//
//   node ocr_ort_compare.mjs --engine PATH/hone_ocr --models DIR --work DIR
//
// DIR of --work is where onnxruntime-node is installed (by this script, with npm and without install scripts) and where
// inputs and outputs go. Passes where max |difference| <= 1e-4 * max |output of ONNX Runtime| for every output.
// Exit code 0: passed; 1: failed; 77: skipped, with the reason on the last line.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const runtimeVersion = "1.30.0";
const tolerance = 1e-4;

function option(name) {
    const at = process.argv.indexOf(`--${name}`);
    if (at < 0 || at + 1 >= process.argv.length) {
        console.error("usage: ocr_ort_compare.mjs --engine PATH --models DIR --work DIR");
        process.exit(2);
    }
    return resolve(process.argv[at + 1]);
}

function skip(why) {
    console.log(`ocr_ort_compare: SKIPPED, ${why}`);
    process.exit(77);
}

function loadRuntime(work) {
    mkdirSync(work, { recursive: true });
    const manifest = join(work, "package.json");
    if (!existsSync(manifest)) writeFileSync(manifest, '{"private": true}\n');
    const require = createRequire(manifest);
    if (!existsSync(join(work, "node_modules", "onnxruntime-node"))) {
        const wanted = `onnxruntime-node@${runtimeVersion}`;
        const npm = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", wanted],
            { cwd: work, encoding: "utf8" });
        if (npm.error || npm.status !== 0) {
            const lines = (npm.error?.message ?? npm.stderr).trim().split("\n");
            skip(`onnxruntime-node ${runtimeVersion} cannot be installed (${lines[0]})`);
        }
    }
    try {
        return require("onnxruntime-node");
    } catch (e) {
        return skip(`onnxruntime-node ${runtimeVersion} cannot be loaded (${e.message.split("\n")[0]})`);
    }
}

// Lines of dark block letters on a light ground, plus noise from a fixed linear congruential generator. The letters
// matter: without any, detection answers 1e-7 everywhere and a tolerance relative to the largest output would measure
// nothing.
const glyphs = [
    "#...##...######...##...#", ".##.#..##..##..##..#.##.", "#..###.##.###..##..##..#", "#####...###.#...#...####",
];
function picture(dims, seed) {
    const [n, c, h, w] = dims;
    const x = new Float32Array(n * c * h * w);
    let state = seed >>> 0;
    const scale = h >= 96 ? 3 : 4, lineHeight = 6 * scale * 2, letterWidth = 5 * scale;
    for (let i = 0; i < x.length; ++i) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        const column = i % w, row = (Math.floor(i / w) % h) - scale * 2;
        const gx = Math.floor((column % letterWidth) / scale);
        const gy = Math.floor((((row % lineHeight) + lineHeight) % lineHeight) / scale);
        const letter = Math.floor(column / letterWidth) * 7 + Math.floor(row / lineHeight) * 3 + seed;
        const glyph = glyphs[letter & 3];
        const ink = gx < 4 && gy < 6 && glyph[gy * 4 + gx] === "#";
        x[i] = (ink ? -1.8 : 2.0) + 0.1 * (state / 2 ** 31 - 1);
    }
    return x;
}

const cases = [
    { model: "ch_PP-OCRv4_det_infer.onnx", dims: [[1, 3, 32, 32], [1, 3, 224, 320], [2, 3, 96, 64]] },
    { model: "ch_ppocr_mobile_v2.0_cls_infer.onnx", dims: [[1, 3, 48, 192], [3, 3, 48, 192]] },
    { model: "ch_PP-OCRv4_rec_infer.onnx", dims: [[1, 3, 48, 320], [1, 3, 48, 96], [2, 3, 48, 488]] },
];

const engine = option("engine"), models = option("models"), work = option("work");
const ort = loadRuntime(work);
const bytesOf = (floats) => Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength);

// What the engine answers: [{name, dims, data}], one entry for each output.
function runEngine(model, x, dims) {
    const inFile = join(work, "in.bin"), outFile = join(work, "out.bin");
    writeFileSync(inFile, bytesOf(x));
    rmSync(outFile, { force: true });  // what an earlier run left must not be read as this one's
    const text = execFileSync(engine, ["--dump-output", model, inFile, outFile, "--dims", dims.join("x")],
        { encoding: "utf8" });
    const raw = readFileSync(outFile);
    const all = new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength));
    let at = 0;
    const outputs = text.trim().split("\n").map((line) => {
        const { name, dims } = JSON.parse(line);
        const size = dims.reduce((a, b) => a * b, 1);
        return { name, dims, data: all.subarray(at, at += size) };
    });
    if (at !== all.length) throw new Error(`${all.length} values written, ${at} announced`);
    return outputs;
}

// What is wrong with `got`, or an empty string; also the figures for the report.
function compare(want, got) {
    let difference = 0, largest = 0, strange = 0;
    for (let j = 0; j < want.length; ++j) {
        // Every comparison with NaN is false and a maximum forgets it: counted by themselves, on both sides.
        if (!Number.isFinite(want[j]) || !Number.isFinite(got[j])) ++strange;
        difference = Math.max(difference, Math.abs(got[j] - want[j]));
        largest = Math.max(largest, Math.abs(want[j]));
    }
    const figures = `max |difference| ${difference.toExponential(2)}, max |output| ${largest.toExponential(2)}`;
    const counts = `${got.length} values, expected ${want.length}`;
    if (want.length === 0 || got.length !== want.length) return [counts, figures];
    if (strange > 0) return [`${strange} values are not finite`, figures];
    return [difference <= tolerance * largest ? "" : "too far apart", figures];
}

let failures = 0;
function report(what, wrong, figures = "") {
    if (wrong) ++failures;
    console.log(`${wrong ? "FAILED" : "ok    "} ${what}${wrong ? `: ${wrong}` : ""}${figures ? `: ${figures}` : ""}`);
}

for (const { model, dims: sizes } of cases) {
    const path = join(models, model);
    if (!existsSync(path)) skip(`${path} is missing`);
    const session = await ort.InferenceSession.create(path);
    for (const [k, dims] of sizes.entries()) {
        const what = `${model} ${dims.join("x")}`;
        const x = picture(dims, k + 1);
        const expected = await session.run({ [session.inputNames[0]]: new ort.Tensor("float32", x, dims) });
        let outputs;
        try {
            outputs = runEngine(path, x, dims);
        } catch (e) {
            report(what, `the engine failed (${e.message.trim().split("\n").pop()})`);
            continue;
        }
        const names = outputs.map((o) => o.name);
        if (names.join() !== session.outputNames.join()) {
            report(what, `outputs ${names.join()}, expected ${session.outputNames.join()}`);
            continue;
        }
        for (const o of outputs) {
            const want = expected[o.name];
            const shapes = `${what} -> ${want.dims.join("x")}`;
            if (o.dims.join("x") !== want.dims.join("x")) report(shapes, `extents ${o.dims.join("x")}`);
            else report(shapes, ...compare(want.data, o.data));
        }
    }
}
const verdict = failures === 0 ? "passed" : `FAILED (${failures})`;
console.log(`ocr_ort_compare: ${verdict}; onnxruntime-node ${runtimeVersion}, ${tolerance} of the largest output`);
process.exit(failures === 0 ? 0 : 1);
