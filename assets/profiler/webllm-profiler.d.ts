/** What a page may read at one time. Sizes are MiB; what the browser does not report is undefined, never zero. */
export interface Sample {
  /** ISO 8601 in UTC, with microseconds. */
  timestamp: string;
  /** Milliseconds since 1970. */
  t_ms: number;
  label: string;
  phase: "baseline" | "load" | "measure" | "idle";
  /** Tokens generated so far in the completion in progress, or in the last one. */
  tokens: number;
  /** The page's JavaScript heap with its array buffers. Chrome and its relatives only. */
  heap_used_mb?: number;
  heap_total_mb?: number;
  /** WebGPU memory that is allocated now. */
  gpu_mb?: number;
  /** The highest WebGPU memory since the last sample. */
  gpu_peak_mb?: number;
  /** Size of all WebAssembly memories. */
  wasm_mb?: number;
}

export interface Timed {
  duration_ms: number;
  /** How long the thread was blocked at most: nothing could be clicked or drawn meanwhile. */
  longest_block_ms: number;
}

export interface Completion extends Timed {
  text?: string;
  /** Generated tokens. */
  tokens: number;
  prompt_tokens?: number;
  /** Absent if the engine runs in a worker. */
  token_ids?: number[];
  /** When each token came, after the request was sent. */
  token_times_ms: number[];
  /** Time to the first token. */
  ttft_ms?: number;
  /** Tokens a second after the first one. */
  decode_tps?: number;
  finish_reason?: string;
  /** WebLLM's own figures. */
  usage?: Record<string, unknown>;
  aborted: boolean;
}

export interface Summary {
  model?: string;
  label: string;
  load?: Timed;
  completions: Completion[];
  heap?: { baseline_mb: number; peak_mb: number };
  /** The WebGPU ledger, in bytes and counts: live_bytes, page_peak_bytes, created_count and others. */
  ledger?: Record<string, number>;
  wasm: { bytes: number; count: number; shared: number };
  /** What sampling itself took: share of the sampled time. */
  sampling: { interval_ms: number; samples: number; dropped: number; cost_ms: number; share: number };
  /** What could not be measured here, and why: a sentence each. */
  cannot: string[];
}

/** The parts of an engine of WebLLM that are used: MLCEngine, WebWorkerMLCEngine or ServiceWorkerMLCEngine. */
export interface Engine {
  completions: { create(request: any): Promise<any> };
  interruptGenerate(): unknown;
}

export interface Options {
  /** Milliseconds between samples; default 100. */
  samplingInterval?: number;
  onSample?: (sample: Sample) => void;
  /** Called with the number of tokens so far. */
  onToken?: (count: number) => void;
  /** Names the rows of the CSV; default: the model's id. */
  label?: string;
  /** The module of WebLLM, or where it is imported from; default "@mlc-ai/web-llm". */
  webllm?: string | { MLCEngine: new (config?: any) => any };
  /** Passed to MLCEngine, such as { appConfig, initProgressCallback }. */
  engineConfig?: object;
  /** Passed to reload. */
  chatOptions?: object;
  /** The model, if a handed engine has several. */
  model?: string;
}

export declare class WebLLMProfiler {
  /** @param model the id of a model to load, or an engine that has loaded one */
  constructor(model: string | Engine, options?: Options);
  /** Loads the model, and measures that. An aborted load rejects with the signal's reason and leaves nothing. */
  initialize(options?: { signal?: AbortSignal }): Promise<void>;
  /** Generates at temperature 0; other fields go to WebLLM. Rejects with the signal's reason if it is aborted. */
  complete(prompt: string, options?: { max_gen_len?: number; signal?: AbortSignal; [field: string]: unknown }): Promise<Completion>;
  readonly label: string;
  getSamples(): Sample[];
  summary(): Summary;
  toCSV(): string;
  /** Offers the samples as a file. */
  downloadCSV(name?: string): void;
  /** Unloads an engine that the profiler made. */
  dispose(): Promise<void>;
}
