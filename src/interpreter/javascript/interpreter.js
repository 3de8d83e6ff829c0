// The JavaScript interpreter of a code context: it reads cells, evaluates them in one global scope, and reports.
//
// It is started as `node -e BOOT` with the descriptors and the protocol of the Python interpreter (see there).
// Cells are evaluated by V8 in the mode that was made for this, `replMode` of the inspector's
// Runtime.evaluate: top-level await, and let and const that may be declared again. Static imports are
// turned into dynamic ones, because a cell is a script.
//
// An interrupt ends what runs synchronously by the watchdog of `vm`; what waits is abandoned.
(function (require, fs, key, importModule) {
	'use strict';
	const inspector = require('inspector');
	const moduleApi = require('module');
	const net = require('net');
	const path = require('path');
	const util = require('util');
	const vm = require('vm');

	const MESSAGE_LIMIT = 8 << 20;
	const TEXT_LIMIT = 1 << 20;
	const VALUE_LIMIT = 64 << 10;
	const DISPLAY = Symbol.for('Jupyter.display');
	const JSON_MIME = /^application\/(?:json|.+\+json)$/;

	const { exit } = process;
	const write = fs.writeSync;
	let count = 0;
	let pending = null; // of the cell that runs: how to end it early

	// ---- the channel ----

	const reader = new net.Socket({ fd: 3, readable: true, writable: false });
	let received = Buffer.alloc(0);

	function send(kind, ...fields) {
		const parts = fields.map((f) => (Buffer.isBuffer(f) ? f : Buffer.from(String(f))));
		const head = `\n${key} ${[kind, ...parts.map((p) => p.length)].join(' ')}\n`;
		const data = Buffer.concat([Buffer.from(head), ...parts]);
		for (let at = 0; at < data.length; ) {
			try {
				at += write(4, data, at, Math.min(65536, data.length - at));
			} catch (error) {
				if (error.code !== 'EAGAIN') exit(70); // nobody can be told any more
			}
		}
	}

	// The next command's fields, when all of them are here.
	function takeCommand() {
		for (;;) {
			const end = received.indexOf(10);
			if (end < 0) return null;
			const [verb, ...lengths] = received.subarray(0, end).toString().split(' ');
			if (verb !== '__bunker_run') {
				if (verb === '__bunker_sync') send('synced', count);
				received = received.subarray(end + 1);
				continue;
			}
			let at = end + 1;
			const sizes = lengths.map(Number);
			if (received.length < at + sizes.reduce((a, b) => a + b, 0)) return null;
			const fields = sizes.map((size) => received.subarray(at, (at += size)).toString());
			received = received.subarray(at);
			return fields;
		}
	}

	// ---- evaluating ----

	const session = new inspector.Session();
	session.connect();
	const guard = new vm.Script('globalThis[Symbol.for("bunker.run")]()', { filename: 'bunker:interpreter' });

	// Whatever runs below the frame of `guard` is ended by SIGINT.
	function runGuarded(run) {
		const slot = Symbol.for('bunker.run');
		Object.defineProperty(globalThis, slot, { value: run, configurable: true, enumerable: false });
		try {
			guard.runInThisContext({ breakOnSigint: true });
		} finally {
			delete globalThis[slot];
		}
	}

	function evaluate(code) {
		return new Promise((resolve, reject) => {
			const options = {
				expression: code,
				replMode: true,
				awaitPromise: true,
				objectGroup: 'cell',
				generatePreview: false,
			};
			runGuarded(() =>
				session.post('Runtime.evaluate', options, (error, answer) => {
					if (error) reject(new Error(error.message));
					else if (answer.exceptionDetails) reject(new Thrown(answer.exceptionDetails));
					else resolve(valueOf(answer.result));
				}),
			);
		});
	}

	// The thing itself, from what the inspector calls it.
	function valueOf(remote) {
		if (remote.objectId === undefined) {
			if (remote.unserializableValue === undefined) return remote.value;
			const text = remote.unserializableValue;
			return text.endsWith('n') ? BigInt(text.slice(0, -1)) : text === '-0' ? -0 : Number(text);
		}
		let found;
		const slot = Symbol.for('bunker.value');
		globalThis[slot] = (value) => {
			found = value;
		};
		session.post('Runtime.callFunctionOn', {
			objectId: remote.objectId,
			functionDeclaration: 'function () { globalThis[Symbol.for("bunker.value")](this); }',
		});
		delete globalThis[slot];
		return remote.type === 'symbol' ? Object(found).valueOf() : found;
	}

	class Thrown {
		constructor(details) {
			this.details = details;
			this.value = details.exception ? valueOf(details.exception) : undefined;
		}
	}

	// ---- preparing a cell ----

	const IMPORT =
		/import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s+|\{([^}]*)\}\s*)?(?:from\s*)?(['"])([^'"\n]+)\4[ \t]*;?/y;
	const OPAQUE = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:\\[^]|[^'\\\n])*'|"(?:\\[^]|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`/y;
	const REGEXP = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y;
	const WORD = /[\w$]+/y;
	const LOAD = 'globalThis[Symbol.for("bunker.import")]';

	const matchAt = (pattern, code, at) => {
		pattern.lastIndex = at;
		return pattern.exec(code);
	};

	// Both kinds of import, where they are code: not in strings, comments and regular expressions.
	function replaceImports(code) {
		let out = '';
		let before = ';'; // the last character of code that is no space
		for (let at = 0; at < code.length; ) {
			const expectsValue = /[(,=:[!&|?{};+\-*%~^<>]/.test(before);
			const skipped = matchAt(OPAQUE, code, at) ?? (expectsValue ? matchAt(REGEXP, code, at) : null);
			const word = skipped ?? matchAt(WORD, code, at);
			const token = word ? word[0] : code[at];
			let text = token;
			let length = token.length;
			if (!skipped && token === 'import' && before !== '.') {
				const statement = /[;}\n]/.test(before) || /\n[ \t]*$/.test(out) ? matchAt(IMPORT, code, at) : null;
				if (statement) [text, length] = [dynamicImport(statement), statement[0].length];
				else if (/^\s*\(/.test(code.slice(at + 6, at + 100))) text = LOAD;
			}
			out += text;
			at += length;
			if (!/^\s+$/.test(token) && !/^\/[/*]/.test(token)) before = text.at(-1);
		}
		return out;
	}

	function dynamicImport([, name, all, names, , from]) {
		const what = `await ${LOAD}(${JSON.stringify(from)})`;
		if (all) return `${name ? `const { default: ${name} } = ${what}; ` : ''}const ${all} = ${what};`;
		if (!name && names === undefined) return `${what};`;
		const parts = name ? [`default: ${name}`] : [];
		for (const part of (names ?? '').split(',')) parts.push(part.trim().replace(/\s+as\s+/, ': '));
		return `const { ${parts.filter(Boolean).join(', ')} } = ${what};`;
	}

	const parses = (code) => {
		try {
			new vm.Script(code);
			return true;
		} catch {
			return false;
		}
	};

	// `{ a: 1 }` alone is an object, as in every REPL.
	function prepare(code) {
		if (/^\s*\{/.test(code) && !/;\s*$/.test(code) && parses(`(${code.trim()})`)) return `(${code.trim()})`;
		return /\bimport\b/.test(code) ? replaceImports(code) : code;
	}

	// ---- showing ----

	function show(kind, value) {
		let bundle = { 'text/plain': textOf(value) };
		try {
			const own = value !== null && typeof value === 'object' && value[DISPLAY];
			if (typeof own === 'function') bundle = { ...bundle, ...own.call(value) };
		} catch (error) {
			process.stderr.write(`Jupyter.display failed: ${error}\n`);
		}
		sendBundle(kind, bundle);
	}

	function textOf(value) {
		if (typeof value === 'string') return value;
		try {
			return util.inspect(value, { depth: 4, maxArrayLength: 1000, maxStringLength: TEXT_LIMIT });
		} catch (error) {
			return `[the value cannot be shown: ${error}]`;
		}
	}

	function sendBundle(kind, bundle) {
		const fields = [];
		let left = MESSAGE_LIMIT - 8192;
		for (const [mime, data] of Object.entries(bundle)) {
			let bytes = encode(mime, data);
			if (bytes === null) continue;
			if (mime === 'text/plain' && bytes.length > TEXT_LIMIT)
				bytes = Buffer.from(`${bytes.toString('utf8', 0, TEXT_LIMIT)}\n... [${bytes.length - TEXT_LIMIT} bytes cut off]`);
			if (bytes.length + mime.length > left) {
				process.stderr.write(`${mime} is left out: it has ${bytes.length} bytes, and ${MESSAGE_LIMIT} are the limit\n`);
				continue;
			}
			left -= bytes.length + mime.length;
			fields.push(mime, bytes);
		}
		send(kind, ...fields);
	}

	function encode(mime, data) {
		if (data === undefined || data === null) return null;
		if (ArrayBuffer.isView(data)) return Buffer.from(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'));
		if (JSON_MIME.test(mime)) {
			try {
				return Buffer.from(JSON.stringify(data) ?? 'null');
			} catch {
				return null;
			}
		}
		return Buffer.from(String(data));
	}

	function display(value, options) {
		if (options?.raw && value !== null && typeof value === 'object') sendBundle('display', value);
		else show('display', value);
	}

	// ---- errors ----

	function report(error) {
		let [name, value, trace] = ['Error', '', ''];
		try {
			const thrown = error instanceof Thrown ? error.value : error;
			if (util.types.isNativeError(thrown) || thrown instanceof Error) {
				name = String(thrown.name);
				value = String(thrown.message);
				trace = ownFrames(String(thrown.stack ?? `${name}: ${value}`));
				if (thrown.cause !== undefined) trace += `\n[cause]: ${textOf(thrown.cause)}`;
			} else {
				value = textOf(thrown);
				trace = `Uncaught ${value}`;
			}
		} catch (problem) {
			trace = `the error cannot be shown: ${problem}`;
		}
		send('error', name.slice(0, 1000), value.slice(0, VALUE_LIMIT), trace.slice(0, 4 * VALUE_LIMIT));
	}

	// Without the frames of this file and of the inspector.
	function ownFrames(stack) {
		const lines = stack.split('\n');
		const end = lines.findIndex((l) => /^\s+at /.test(l) && /bunker:interpreter|node:inspector|node:vm/.test(l));
		return (end < 0 ? lines : lines.slice(0, end)).join('\n');
	}

	class KeyboardInterrupt extends Error {
		get name() {
			return 'KeyboardInterrupt';
		}
	}

	// ---- one run ----

	// What can make JavaScript of TypeScript: this node, or the compiler where it is installed.
	function findStripper() {
		if (typeof moduleApi.stripTypeScriptTypes === 'function')
			return (code) => moduleApi.stripTypeScriptTypes(code, { mode: 'transform' });
		try {
			const compiler = globalThis.require('typescript');
			const compilerOptions = { target: 'esnext', module: 'esnext' };
			return (code) => compiler.transpileModule(code, { compilerOptions }).outputText;
		} catch {
			return null;
		}
	}

	const HAS_TYPES = /[\w\])]\??\s*:\s*(?:number|string|boolean|any|void|unknown|never|[A-Z]\w*)\b|\b(?:interface|enum|type)\s+\w+/;

	// A cell that is no JavaScript may be TypeScript; the answer is what is to be run.
	function withoutTypes(code) {
		const ready = prepare(code);
		if (!HAS_TYPES.test(code) || parses(`async () => {${ready}\n}`) || parses(ready)) return ready;
		const strip = findStripper();
		if (!strip) {
			process.stderr.write(
				`This looks like TypeScript, and runs as JavaScript: node ${process.version} cannot strip types ` +
					"(22.13 and later can), and there is no package 'typescript'\n",
			);
			return ready;
		}
		const warn = process.emitWarning;
		process.emitWarning = () => {}; // that it is experimental
		try {
			return prepare(strip(code));
		} finally {
			process.emitWarning = warn;
		}
	}

	function putVariables(variables) {
		const saved = new Map();
		for (const variable of variables) {
			const at = variable.indexOf('=');
			const name = variable.slice(0, at);
			saved.set(name, process.env[name]);
			process.env[name] = variable.slice(at + 1);
		}
		return saved;
	}

	function restoreVariables(saved) {
		for (const [name, value] of saved) {
			if (value === undefined) delete process.env[name];
			else process.env[name] = value;
		}
	}

	async function runCell(code) {
		const interrupted = new Promise((_, reject) => {
			pending = () => reject(new KeyboardInterrupt('the run was interrupted'));
		});
		interrupted.catch(() => {});
		try {
			const value = await Promise.race([evaluate(withoutTypes(code)), interrupted]);
			if (value !== undefined) show('result', value);
		} catch (error) {
			const stopped = error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
			report(stopped ? new KeyboardInterrupt('the run was interrupted') : error);
		} finally {
			pending = null;
			session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
		}
	}

	async function run([code, ...variables]) {
		count++;
		const saved = putVariables(variables);
		await runCell(code);
		restoreVariables(saved);
		send('done');
	}

	let busy = false;
	async function work() {
		if (busy) return;
		busy = true;
		for (let fields; (fields = takeCommand()) !== null; ) await run(fields);
		busy = false;
	}

	function interrupt() {
		if (pending) pending();
	}

	function prepareGlobals() {
		const local = moduleApi.createRequire(path.join(process.cwd(), 'cell.js'));
		const names = { require: local, display, exports: {}, module: { exports: {} } };
		const load = (name) => importModule(String(name).replace(/^npm:/, ''));
		for (const [name, value] of [...Object.entries(names), [Symbol.for('bunker.import'), load]])
			Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
	}

	process.on('SIGINT', interrupt);
	// A timer or promise of an earlier cell that fails is that cell's affair, not the interpreter's end.
	for (const event of ['uncaughtException', 'unhandledRejection'])
		process.on(event, (error) => process.stderr.write(`Uncaught ${textOf(error)}\n`));
	prepareGlobals();
	reader.on('data', (data) => {
		received = received.length ? Buffer.concat([received, data]) : data;
		work();
	});
	reader.on('end', () => exit(0));
	reader.on('error', () => exit(70));
	send('ready', process.versions.node, process.cwd());
});
