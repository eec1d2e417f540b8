// The model of the example app: an id of WebLLM's list, or of a list of your own in engineConfig.
export const model = "Llama-3.2-1B-Instruct-q4f16_1-MLC";
export const maxTokens = 50;
export const options = { webllm: "https://esm.run/@mlc-ai/web-llm@WEBLLM_VERSION" };
