"""What settings are called elsewhere, and here: the words that people bring with them, as suggestions."""

import difflib
import re
from collections.abc import Iterable

from orrery.schema.keys import Known

_TABLE = """
training.optimizer.rate training.rate: lr learning_rate max_lr initial_lr peak_lr base_lr step_size
training.schedule.final training.final_rate: min_lr end_lr final_lr lr_end min_lr_ratio
training.schedule.warmup: warmup warmup_steps warmup_iters num_warmup_steps warmup_ratio lr_warmup_steps
training.schedule.kind: scheduler lr_scheduler lr_scheduler_type lr_schedule lr_decay_style schedule_type
training.schedule.decay: decay_steps lr_decay_iters lr_decay_steps cooldown num_decay_steps
training.optimizer.kind: optim optimizer_type optimizer_name optimizer optim_type
training.optimizer.weight_decay: wd weight_decay l2 l2_penalty
training.optimizer.betas: beta1 beta2 adam_beta1 adam_beta2 betas
training.optimizer.eps: adam_epsilon adam_eps epsilon eps
training.optimizer.momentum: momentum
training.clip: max_grad_norm grad_clip clip_grad gradient_clipping gradient_clip_val clip_grad_norm max_norm
training.epochs training.steps steps: epochs epoch num_epochs n_epochs num_train_epochs train_epochs max_epochs
training.steps steps: max_steps num_steps total_steps train_steps n_steps iters max_iters num_iters iterations
batch_size batches.size batch rows: bs bsz batch_size train_batch_size per_device_train_batch_size
batch_size batches.size batch rows: per_gpu_train_batch_size global_batch_size n_batch rows_per_batch total_batch_size
batch_size batches.size batch rows: batch batchsize
training.micro_batch: micro_batch_size microbatch microbatch_size micro_batch gradient_accumulation_steps grad_accum
training.micro_batch: grad_accum_steps accumulate_grad_batches gradient_accumulation accumulation_steps n_ubatch
training.micro_batch: ubatch_size
batches.tokens: max_tokens_per_batch tokens_per_batch batch_tokens
batches.length length: seq_len seq_length sequence_length sequence_len max_seq_len max_seq_length
batches.length length: max_length max_len block_size context_length context_size cutoff_len
batches.length length: model_max_length ctx_len n_ctx ctx_size ctx max_source_length
training.precision dtype: bf16 fp16 fp32 half amp mixed_precision precision torch_dtype data_type dtype compute_dtype
training.device device: use_cpu no_cuda use_cuda cuda gpu cpu gpus device_map accelerator n_gpu n_gpu_layers
device: ngl gpu_layers -ngl
evaluation.every: eval_steps eval_every eval_interval eval_freq validation_steps val_check_interval
evaluation.batches: eval_iters eval_batches limit_val_batches max_eval_samples
evaluation.best: metric_for_best_model best_metric monitor
evaluation.patience: early_stopping early_stopping_patience patience
training.final: load_best_model_at_end save_best keep_best
checkpoints.every: save_steps save_every save_interval save_freq checkpoint_every checkpointing_steps
checkpoints.keep: save_total_limit keep_last max_checkpoints num_checkpoints
logging.observers: report_to log_with loggers
logging.every: logging_steps log_every log_interval log_freq log_steps
output out: output_dir out_dir output_path save_dir save_path save_to outfile output_file default_root_dir o
resume: resume_from resume_from_checkpoint continue auto_resume resume_training init_from
overwrite: overwrite_output_dir force overwrite_output exist_ok
dry_run: plan_only dryrun
print_config: show_config dump_config
from model.from model: model model_name model_path model_name_or_path base_model pretrained checkpoint ckpt
model: m -m model_id model_dir hf_model hf_repo
task: task_name task_type
text train data.train: dataset dataset_name dataset_path data data_path data_dir train_file train_data train_path
train data.train: train_dataset train_files training_data training_file
val data.val: val_file val_data valid validation validation_file eval_file eval_data eval_dataset dev_file test_file
val data.val: valid_file
data.split: val_split validation_split test_size val_set_size eval_ratio split_ratio
column text data.text data.column: text_column text_field dataset_text_field text_key column_name field
label data.label: label_column label_key labels_column target_column
skip_bad data.skip_bad: skip_errors ignore_errors skip_invalid on_bad_lines
seed: random_seed rng_seed manual_seed random_state seed_value s -s
model.dropout: dropout hidden_dropout dropout_rate resid_pdrop hidden_dropout_prob attention_dropout
objective.balance: router_aux_loss_coef aux_loss_coef aux_loss_alpha moe_aux_loss_coeff load_balancing_loss_coef
objective.label_smoothing: label_smoothing label_smoothing_factor smoothing
objective.beta: beta dpo_beta kl_coef
loss objective.kind: loss_type loss_fn rl_type
model.adapter.rank: lora_r lora_rank r rank lora_dim
model.adapter.alpha: lora_alpha alpha
model.adapter.dropout: lora_dropout
model.adapter.targets: target_modules lora_target lora_target_modules lora_targets
model.adapter: use_lora use_peft peft lora adapter_type
model.freeze: freeze freeze_layers frozen trainable
tokenizer.vocabulary vocabulary: vocab vocab_size vocabulary_size n_vocab
tokenizer.kind kind: model_type tokenizer_type algorithm
data.samples samples: num_generations group_size num_samples n_samples rollouts num_rollouts
reward: reward_model reward_fn reward_funcs reward_function reward_model_path
data.template template: chat_template prompt_template conversation_template jinja
data.system system: system_prompt sys_prompt system_message instructions sys
name: run_name experiment_name exp_name wandb_name project served_model_name alias
workers: num_workers num_proc dataloader_num_workers nproc n_jobs jobs
temperature: temp t temperatur heat
max_new_tokens data.max_new_tokens new: max_tokens max_completion_tokens max_output_tokens max_gen_len max_new_token
max_new_tokens data.max_new_tokens new: max_gen_toks n_predict num_predict max_length max_len max_gen_length
max_new_tokens data.max_new_tokens new: max_tokens_to_sample predict new_tokens num_tokens n_tokens -n
max_new_tokens: -c max_generated_tokens generate_tokens max_decode_length
min_new_tokens: min_tokens min_length min_len min_new_token
top_k: topk k sampling_topk num_labels_shown
top_p: topp nucleus nucleus_p p sampling_topp
min_p: minp
typical_p: typical typicalp typ_p typical_mass
repetition_penalty: repeat_penalty rep_pen rep_penalty
repetition_window: repeat_last_n penalty_last_n rep_pen_range
presence_penalty: presence pres_pen
frequency_penalty: frequency freq_pen freq_penalty
num_beams: beams beam beam_size beam_width n_beams num_beam use_beam_search
length_penalty: lenpen len_penalty beam_alpha
no_repeat_ngram_size: no_repeat_ngram ngram_block block_ngram
answers samples: n num_return_sequences best_of n_best nbest num_outputs
stop: stop_strings stop_sequences stop_words stop_sequence stop_token reverse_prompt eos_string stop_string
bad_word: bad_words bad_words_ids banned_words banned_tokens
regex: guided_regex regexp pattern
json_schema: schema guided_json response_format json_schema_file response_schema
grammar: grammar_file guided_grammar gbnf lark
draft: draft_model speculative_model assistant_model model_draft md prompt_lookup_num_tokens
penalty_alpha: contrastive_alpha
truncate truncation: truncate_prompt truncation_side truncate_prompt_tokens trunc
prompt text: p -p prompt_text input input_text query question
prompt: user_prompt start prompts starts
file: f -f input_file prompt_file infile in_file source_file text_file from_file
host: bind address ip listen hostname
port: server_port listen_port http_port
api_key_file: api_key apikey key token api_token
adapter: lora_modules enable_lora lora_path lora_adapter lora_adapters adapters adapter_path lora
most_rows: max_num_seqs parallel np n_parallel max_batch_size max_concurrent_requests max_running_requests
most_tokens: max_num_batched_tokens max_batch_total_tokens kv_cache_size max_total_tokens
queue: max_waiting max_queue queue_size max_queue_size
cors_origin: allowed_origins cors cors_allow_origin allow_origins
allowed_host: allowed_hosts trusted_hosts
deterministic: batch_invariant enable_deterministic reproducible
kernel: attn_implementation attention_backend attention backend compile use_compile torch_compile
type bits: quantization quant quantize load_in_4bit load_in_8bit outtype qtype quantisation
bits: n_bits wbits num_bits
shots: num_fewshot n_shot fewshot few_shot num_shots
json: as_json json_output output_json format_json
allow_pickle: trust_pickle allow_pickles unsafe weights_only
ignore_keys: ignore_unknown ignore_config_keys
labels: candidate_labels classes class_names
candidates: choices targets options
normalise: normalize normalize_embeddings l2_normalize
truncation truncate: max_length max_len max_seq_length max_seq_len model_max_length ctx n_ctx cutoff_len
threads: num_threads n_threads cpu_threads
"""
"""Names here, of which the first that a place knows is meant, and what they are called in transformers, trl, axolotl,
nanoGPT, llama.cpp, vLLM, Ollama and by OpenAI; a word with a dash is a short flag."""


def _read(table: str) -> dict[str, tuple[str, ...]]:
    words: dict[str, tuple[str, ...]] = {}
    for line in table.strip().splitlines():
        here, _, there = line.partition(": ")
        for word in there.split():
            words[word] = (*words.get(word, ()), *here.split())
    return words


OTHER_NAMES = _read(_TABLE)
"""What each word may mean here, in the order in which it is looked for."""


def plain(word: str) -> str:
    """Return a setting's name as settings are written here: ``--learningRate`` is ``learning_rate``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word.lstrip("-")).lower().replace("-", "_")


def meant(word: str, known: Known) -> str | None:
    """Return which of the names that a place knows a word means, or nothing where none is near.

    Args:
        word: as it was written, with or without dashes.
        known: the place's own names.
    """
    return called_elsewhere(word, known) or _near(plain(word).rpartition(".")[2], known.names())


def called_elsewhere(word: str, known: Known) -> str | None:
    """Return the name that a place has for a word of another program, or for the last part of a key."""
    name = plain(word)
    last = name.rpartition(".")[2]
    short = [word] if re.fullmatch(r"-[a-z]+", word) else []
    if name in known:
        return name
    if last in (ends := _ends(known.names())):
        return ends[last]
    words = dict.fromkeys((*short, name, last))
    return next((one for each in words for one in OTHER_NAMES.get(each, ()) if one in known), None)


def _ends(names: Iterable[str]) -> dict[str, str]:
    """Return names by their last part; of several the least deep."""
    ends: dict[str, str] = {}
    for one in sorted(names, key=lambda one: one.count(".")):
        ends.setdefault(one.rpartition(".")[2], one)
    return ends


def _near(last: str, names: Iterable[str]) -> str | None:
    ends = _ends(names)
    close = difflib.get_close_matches(last, ends, n=1, cutoff=0.75)
    return ends[close[0]] if close else None
