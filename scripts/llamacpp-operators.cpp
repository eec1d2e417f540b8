// llmparity-operators times llama.cpp's operators one by one. scripts/setup links it to the libraries of its own build,
// and it lies beside that build's llama-server, whose options it is given.
//
//   llmparity-operators NAME VALUE ... < TOKENS
//
// TOKENS are the ids of a prompt. It generates twice as llama.cpp does, to warm up and to know what timing costs, and
// once with llama.cpp's evaluation callback, which makes the scheduler compute each operator alone and wait for it.
// What it prints is a line for each operator, with fields separated by tabs:
//
//   wall PHASE NS PLAIN_NS                                       PLAIN_NS: without timing
//   op   PHASE OPERATOR TENSOR OPERANDS CALLS NS BYTES SLOWEST  SLOWEST: the longest call
//   wait PHASE WHAT CALLS NS
//
// Operators that only describe their operand anew (views, reshapes) compute nothing and are left out.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

using ns = long long;

static ns now() {
	using namespace std::chrono;
	return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] static void die(const std::string & why) {
	fprintf(stderr, "%s\n", why.c_str());
	exit(1);
}

static std::string shape(const ggml_tensor * t) {
	std::string s = std::string(ggml_type_name(t->type)) + "[";
	int last = GGML_MAX_DIMS - 1;
	while (last > 0 && t->ne[last] == 1) last--;
	for (int i = 0; i <= last; i++) s += (i ? "×" : "") + std::to_string(t->ne[i]);
	return s + "]";
}

// plain makes a text safe between tabs and in JSON.
static std::string plain(std::string s) {
	for (char & c : s) if ((unsigned char) c < ' ' || c == '"' || c == '\\') c = '_';
	return s;
}

// operands names what an operator reads, and the device's buffer if it is not the CPU's.
static std::string operands(const ggml_tensor * t) {
	std::string s;
	for (int i = 0; i < GGML_MAX_SRC && t->src[i]; i++) s += (i ? ", " : "") + shape(t->src[i]);
	const ggml_tensor * base = t->view_src ? t->view_src : t;
	std::string where = base->buffer ? ggml_backend_buffer_name(base->buffer) : "CPU";
	if (where.rfind("CPU", 0) != 0) s += " on " + where;
	return plain(s);
}

// bytes of a tensor's elements. ggml_nbytes also counts what lies between the rows of a view, as of the KV cache.
static ns bytes(const ggml_tensor * of, ggml_type type) {
	return ggml_nelements(of) * ggml_type_size(type) / ggml_blck_size(type);
}

// moved is how many bytes an operator reads and writes. Of a table or cache it touches only the rows in question.
static ns moved(const ggml_tensor * t) {
	if (t->op == GGML_OP_GET_ROWS) return bytes(t, t->type) + bytes(t, t->src[0]->type);
	if (t->op == GGML_OP_SET_ROWS) return bytes(t->src[0], t->src[0]->type) + bytes(t->src[0], t->type);
	ns sum = bytes(t, t->type);
	for (int i = 0; i < GGML_MAX_SRC && t->src[i]; i++) sum += bytes(t->src[i], t->src[i]->type);
	return sum;
}

static bool computes(const ggml_tensor * t) {
	switch (t->op) {
		case GGML_OP_NONE: case GGML_OP_VIEW: case GGML_OP_RESHAPE: case GGML_OP_PERMUTE: case GGML_OP_TRANSPOSE:
			return false;
		default:
			return !ggml_is_empty(t);
	}
}

struct sum { ns calls, time, bytes, slowest; };
struct event { int kernel, phase; ns begin, end; };

static const char * const phases[] = {"prefill", "decode"};

struct profile {
	bool on = false;
	int phase = 0;
	ns last = 0;  // when the time that belongs to no operator began
	ns began = 0; // the operator that is being computed
	bool first = true; // of a forward pass
	int kernel = 0;
	ns bytes = 0;
	std::unordered_map<size_t, int> seen;
	std::unordered_map<std::string, int> known;
	std::vector<std::string> names;
	std::unordered_map<int, sum> operators[2]; // by phase and kernel
	std::map<std::string, sum> waits[2];
	std::vector<event> events;

	int intern(const std::string & name) {
		auto at = known.emplace(name, (int) names.size());
		if (at.second) names.push_back(name);
		return at.first->second;
	}

	// of returns the kernel of a tensor. Texts are made once for each name, operator and shapes: they take microseconds.
	int of(const ggml_tensor * t) {
		size_t hash = std::hash<std::string_view>{}(t->name);
		auto mix = [&](size_t v) { hash = (hash ^ v) * 0x9e3779b97f4a7c15ull + (hash >> 29); };
		mix(t->op);
		for (int i = 0; i < GGML_MAX_SRC && t->src[i]; i++) {
			mix(t->src[i]->type);
			for (int64_t n : t->src[i]->ne) mix(n);
		}
		auto at = seen.emplace(hash, 0);
		if (at.second) {
			at.first->second = intern(std::string(ggml_op_desc(t)) + "\t" + plain(t->name) + "\t" + operands(t));
		}
		return at.first->second;
	}

	// wait adds the time since the last operator's end.
	void wait(const char * what, ns until) {
		sum & s = waits[phase][what];
		s.calls++;
		s.time += until - last;
		last = until;
	}

	void done(int kernel, ns begin, ns end, ns bytes) {
		sum & s = operators[phase][kernel];
		s.calls++;
		s.time += end - begin;
		s.bytes += bytes;
		s.slowest = std::max(s.slowest, end - begin);
		events.push_back({kernel, phase, begin, end});
	}
};

// observe is llama.cpp's evaluation callback: it is asked whether a tensor is to be computed alone, and called again
// when that is done. What it does itself is time of its own.
static bool observe(ggml_tensor * t, bool ask, void * of) {
	profile & p = *(profile *) of;
	if (!p.on) return !ask;
	if (ask) {
		if (!computes(t)) return false;
		p.wait(p.first ? "before the first operator" : "between operators", now());
		p.first = false;
		p.kernel = p.of(t);
		p.bytes = moved(t);
		p.began = now();
		p.wait("timing itself", p.began);
		return true;
	}
	ns end = now();
	p.done(p.kernel, p.began, end, p.bytes);
	p.last = end;
	p.wait("timing itself", now());
	return true;
}

struct engine {
	llama_context * context;
	const llama_vocab * vocab;
	llama_sampler * sampler;
	profile * seen;
	int batch;
	bool stop_at_end;

	void forward(llama_token * ids, int n) {
		seen->first = true;
		if (llama_decode(context, llama_batch_get_one(ids, n)) != 0) die("llama.cpp failed to compute the tokens");
		llama_synchronize(context);
		if (seen->on) seen->wait("after the last operator", now());
	}

	llama_token sample() {
		ns begin = now();
		llama_token id = llama_sampler_sample(sampler, context, -1);
		if (seen->on) {
			ns end = now();
			seen->done(seen->intern("SAMPLE\tgreedy\tf32[" + std::to_string(llama_vocab_n_tokens(vocab)) + "]"), begin, end,
				(ns) llama_vocab_n_tokens(vocab) * (ns) sizeof(float));
			seen->last = end;
			seen->wait("timing itself", now());
		}
		return id;
	}

	// generate returns the tokens, and how long each phase took.
	std::vector<llama_token> generate(std::vector<llama_token> prompt, int most, ns wall[2]) {
		llama_memory_clear(llama_get_memory(context), true);
		std::vector<llama_token> out;
		ns begin = now();
		seen->phase = 0;
		seen->last = begin;
		for (size_t i = 0; i < prompt.size(); i += batch) {
			forward(prompt.data() + i, (int) std::min((size_t) batch, prompt.size() - i));
		}
		out.push_back(sample());
		ns first = now();
		seen->phase = 1;
		seen->last = first;
		while ((int) out.size() < most && !(stop_at_end && llama_vocab_is_eog(vocab, out.back()))) {
			llama_token id = out.back();
			forward(&id, 1);
			out.push_back(sample());
		}
		wall[0] = first - begin;
		wall[1] = now() - first;
		return out;
	}
};

struct options {
	std::map<std::string, std::string> given;
	std::string text(const char * name, const char * usual) {
		auto at = given.find(name);
		return at == given.end() ? usual : at->second;
	}
	int number(const char * name, int usual) { return atoi(text(name, std::to_string(usual).c_str()).c_str()); }
	ggml_type type(const char * name) {
		std::string want = text(name, "f32");
		for (int i = 0; i < GGML_TYPE_COUNT; i++) {
			const char * known = ggml_type_name((ggml_type) i);
			if (known && want == known) return (ggml_type) i;
		}
		die(std::string(name) + ": llama.cpp has no dtype " + want);
	}
};

// write_trace writes each call as Chrome and Perfetto read it.
static void write_trace(const profile & p, const std::string & path) {
	FILE * f = fopen(path.c_str(), "w");
	if (!f) die("cannot write " + path);
	fprintf(f, "{\"traceEvents\":[");
	const char * comma = "\n";
	for (const event & e : p.events) {
		const std::string & name = p.names[e.kernel];
		size_t a = name.find('\t'), b = name.find('\t', a + 1);
		fprintf(f, "%s{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":\"%s\",\"name\":\"%s %s\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"operands\":\"%s\"}}",
			comma, phases[e.phase], name.substr(0, a).c_str(), name.substr(a + 1, b - a - 1).c_str(),
			(e.begin - p.events[0].begin) / 1e3, (e.end - e.begin) / 1e3, name.substr(b + 1).c_str());
		comma = ",\n";
	}
	fprintf(f, "\n]}\n");
	if (fclose(f) != 0) die("cannot write " + path);
}

static void print(const profile & p, const ns wall[2], const ns usual[2]) {
	for (int i = 0; i < 2; i++) {
		printf("wall\t%s\t%lld\t%lld\n", phases[i], wall[i], usual[i]);
		for (auto & [kernel, s] : p.operators[i]) {
			printf("op\t%s\t%s\t%lld\t%lld\t%lld\t%lld\n", phases[i], p.names[kernel].c_str(), s.calls, s.time, s.bytes,
				s.slowest);
		}
		for (auto & [what, s] : p.waits[i]) {
			printf("wait\t%s\t%s\t%lld\t%lld\n", phases[i], what.c_str(), s.calls, s.time);
		}
	}
}

int main(int argc, char ** argv) {
	options o;
	for (int i = 1; i + 1 < argc; i += 2) o.given[argv[i]] = argv[i + 1];
	std::vector<llama_token> prompt;
	for (int id; scanf("%d", &id) == 1;) prompt.push_back(id);
	if (prompt.empty()) die("standard input has no tokens");

	llama_log_set([](ggml_log_level level, const char * text, void *) {
		if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
	}, nullptr);
	llama_backend_init();
	llama_model_params of_model = llama_model_default_params();
	ggml_backend_dev_t none[] = {nullptr};
	of_model.n_gpu_layers = o.number("gpu-layers", 0);
	if (of_model.n_gpu_layers == 0) of_model.devices = none;
	if (o.text("mmap", "on") == "off") of_model.load_mode = LLAMA_LOAD_MODE_NONE;
	llama_model * model = llama_model_load_from_file(o.text("model", "").c_str(), of_model);
	if (!model) die("llama.cpp does not load the model");

	profile seen;
	llama_context_params of_context = llama_context_default_params();
	of_context.n_ctx = o.number("context", 0);
	of_context.n_batch = o.number("batch", of_context.n_batch);
	of_context.n_ubatch = o.number("ubatch", of_context.n_ubatch);
	of_context.n_threads = o.number("threads", 1);
	of_context.n_threads_batch = o.number("batch-threads", 1);
	of_context.type_k = o.type("cache-k");
	of_context.type_v = o.type("cache-v");
	std::string flash = o.text("flash", "off");
	of_context.flash_attn_type = flash == "on" ? LLAMA_FLASH_ATTN_TYPE_ENABLED :
		flash == "auto" ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_DISABLED;
	of_context.cb_eval = observe;
	of_context.cb_eval_user_data = &seen;
	llama_context * context = llama_init_from_model(model, of_context);
	if (!context) die("llama.cpp does not make a context");

	engine e = {context, llama_model_get_vocab(model), llama_sampler_init_greedy(), &seen, (int) llama_n_batch(context),
		o.text("ignore-eos", "on") == "off"};
	int most = o.number("tokens", 16);
	ns wall[2], usual[2];
	e.generate(prompt, most, usual); // warms up
	std::vector<llama_token> expected = e.generate(prompt, most, usual);
	seen.on = true;
	if (e.generate(prompt, most, wall) != expected) die("with timing, llama.cpp generates other tokens than without");
	print(seen, wall, usual);
	std::string trace = o.text("trace", "");
	if (!trace.empty()) write_trace(seen, trace);
	llama_sampler_free(e.sampler);
	llama_free(context);
	llama_model_free(model);
}
