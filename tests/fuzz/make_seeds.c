/* Good inputs for the fuzz targets to begin from: make_seeds FOLDER writes FOLDER/TARGET/NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/data/index_writer.h"

static struct wlb_error error;

static void check(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "make_seeds: %s\n", error.message);
	exit(1);
}

/* A body of POST .../records with one plan between them. */
#define PLAN_HEAD                                                                                                      \
	"{\"attempt_id\":\"01234567-89ab-cdef-0123-456789abcdef\",\"source\":\"run\",\"job_id\":12,\"first_seq\":1,"   \
	"\"records\":[{\"seq\":1,\"time\":1790000000.5,\"type\":\"plan\",\"data\":"
#define PLAN_TAIL "}]}"

/* A machine file with measured rates. */
#define MEASURED                                                                                                       \
	"{\"name\":\"box\",\"gpus_per_node\":8,\"peak_flops\":1e15,\"gemm_efficiency\":0.7,"                           \
	"\"attention_efficiency\":0.6,\"attention_backward_efficiency\":0.5,"                                          \
	"\"attention_tile_tokens\":128,\"attention_overhead_keys\":200,\"memory_bytes\":8e10,"                         \
	"\"memory_bytes_per_s\":3e12,\"node_link\":{\"bytes_per_s\":4e11,\"latency_s\":3e-6},"                         \
	"\"network_link\":{\"bytes_per_s\":5e10,\"latency_s\":1e-5},\"switch_taper\":1,"                               \
	"\"switch_link\":{\"bytes_per_s\":2e10,\"latency_s\":2e-5},\"switch_latency_s\":0,"                            \
	"\"operations\":{\"adamw\":{\"call_s\":1e-6,\"element_s\":1e-12}},"                                            \
	"\"element_bytes\":4,\"operation_s\":1e-6,\"gemm\":{\"rows\":[64,512],\"depth\":[128],"                        \
	"\"columns\":[128,256],\"flops_per_s\":[[[1e12,2e12]],[[3e12,4e12]]]},\"attention\":"                          \
	"{\"q_tokens\":[64],\"k_tokens\":[64,512],\"forward_flops_per_s\":[[1e12,2e12]],"                              \
	"\"backward_flops_per_s\":[[1e12,2e12]]}}"

static const struct {
	const char *path;
	const char *text;
} texts[] = {
	{"model_config/llama.json",
         "{\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":64,\"intermediate_size\":128,"
         "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,"
         "\"vocab_size\":257,\"max_position_embeddings\":512,\"rope_theta\":1e4,\"rms_norm_eps\":1e-5,"
         "\"rope_scaling\":null,\"attention_bias\":false,\"tie_word_embeddings\":true,"
         "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5}}"},
	{"model_config/qwen2_yarn.json",
         "\xef\xbb\xbf{\"architectures\":[\"Qwen2ForCausalLM\"],\"hidden_act\":\"swish\",\"hidden_size\":64,"
         "\"intermediate_size\":128.0,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":null,"
         "\"vocab_size\":257,\"sliding_window\":64,\"use_sliding_window\":true,\"layer_types\":[\"full_attention\","
         "\"sliding_attention\"],\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"mscale\":0.7,"
         "\"mscale_all_dim\":1,\"original_max_position_embeddings\":64,\"beta_fast\":16}}"},
	{"model_config/smollm3.json",
         "{\"model_type\":\"smollm3\",\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_layers\":4,"
         "\"num_attention_heads\":4,\"vocab_size\":257,\"no_rope_layers\":[1,0,1,0],\"no_rope_layer_interval\":2}"},
	{"model_config/gemma3.json",
         "{\"model_type\":\"gemma3_text\",\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":64,"
         "\"intermediate_size\":128,\"num_hidden_layers\":3,\"num_attention_heads\":4,\"head_dim\":16,"
         "\"vocab_size\":257,\"query_pre_attn_scalar\":12,\"final_logit_softcapping\":4,\"attn_logit_softcapping\":"
         "null,"
         "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\"],\"rope_parameters\":{"
         "\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":1e6},\"sliding_attention\":{"
         "\"rope_type\":\"default\",\"rope_theta\":1e4}}}"},
	{"jsonl/two.jsonl", "{\"text\":\"one\"}\n\n{\"id\":1,\"text\":\"t\\u00e4\\u0000\"}\r\n"},
	{"jsonl/sentences", "{\"text\":[\"one.\",\"\",\"two.\"]}\n"},
	{"jsonl/messages", "{\"text\":[{\"role\":\"user\",\"content\":\"a\\u0000\"}],\"tools\":[{\"n\":[1,1.5]}]}\n"},
	{"jsonl/array", "[{\"text\":\"one\"},\n{\"text\":\"two\"}]"},
	{"jsonl/pretty", "{\n\"text\":\"one\"\n}\n{\"text\":\"two\"}"},
	{"jsonl/python", "\xef\xbb\xbf{\"a\":NaN,\"b\":[-Infinity,1e999,18446744073709551615],\"text\":\"\\ud83d x "
                         "\\ud83d\\ude00\"}\n"},
	{"published/index", "i{\"metadata\":{},\"weight_map\":{\"w\":\"a\",\"v\":\"b\"}}"},
	{"policy/auto", "auto"},
	{"policy/fixed", "tp=2,cp=1,pp=4,dp=8"},
	{"on_fault/kinds", "report,hang=evict,crash=evict"},
	{"on_fault/limits", "slow=evict,hang-after=5m,slow-by=2.5%"},
	{"links/cut", "{\"nodes\":[\"n1\",\"n2\",\"n3\"],\"links\":{\"checked\":true,\"unreached\":"
                      "{\"n2\":[\"n1\",\"n3\"],\"n3\":[\"n2\"]}}}"},
	{"kernel_log/bus",
         "3,1042,98765432109,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
         "fallen off the bus.\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"},
	{"kernel_log/instance",
         "4,1043,98765432110,c,caller=T7;NVRM: Xid (PCI:10000:3b:00 GPU-I:02 GPU-CI:00): 13, pid=7\n"},
	{"kernel_log/recovered",
         "3,9,8,-;NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset "
         "Required) to 0x0 (None)\n"},
	{"kernel_log/driver", "6,9,8,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.105.08\n"},
	{"node_check/failed",
         "{\"node\":\"n3\",\"healthy\":false,\"reason\":\"memory\",\"checks\":[{\"check\":\"memory\","
         "\"verdict\":\"failed\",\"measured\":\"1 bit\",\"limit\":null}]}"},
	{"node_check/cleared", "{\"node\":\"n3\",\"healthy\":true,\"clears\":true}"},
	{"http/ok",
         "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: keep-alive\r\nContent-Type: application/json"},
	{"http/close", "HTTP/1.0 404 Not Found\r\nConnection: close"},
	{"spool/two", "{\"wlb_spool\":1,\"run_id\":\"12\",\"attempt_id\":\"a\",\"source\":\"rank0\"}\n"
                      "{\"seq\":1,\"time\":1.5,\"type\":\"event\",\"data\":{\"kind\":\"k\"}}\n"
                      "{\"seq\":2,\"time\":2.5,\"type\":\"event\",\"data\":{}}\n{\"seq\":3,"},
	{"settings/conf", "# wlbd\nlisten = 127.0.0.1:8484\ndatabase = host=/tmp dbname=wlb\nprivate_data = yes\n"},
	{"settings/address", "[::1]:8484"},
	{"settings/run", "/v1/runs/12.2"},
	{"activities/two",
         "{\"activities\":[{\"rank\":3,\"step\":41,\"activity\":\"computing\",\"for_s\":0.412,\"process\":\"running\","
         "\"call\":"
         "{\"kind\":\"all_gather\",\"group\":0,\"seq\":1234,\"bytes\":65536,\"for_s\":0.2},\"groups\":[[\"tp\",2,1234,"
         "1233],"
         "[\"dp\",4,96,96]]},{\"rank\":4,\"step\":0,\"activity\":\"starting\",\"for_s\":1,\"process\":\"gone\"}]}"},
	{"processes/two",
         "{\"processes\":{\"running\":6,\"faulty\":[{\"rank\":12,\"task\":1,\"pid\":345,\"state\":\"stopped\"},"
         "{\"rank\":1,\"task\":1,\"pid\":99,\"state\":\"waiting\",\"launcher\":\"torchrun\",\"for_s\":26,\"nodes\":3}]}"
         "}"},
	{"python_stack/handler",
         "Thread 0x1 (most recent call first):\n  File \"/a/b.py\", line 3 in f\n\nCurrent thread 0x2 (most recent "
         "call first):\n  File \"/a/b.py\", line 12 in step\n  File \"/a/b.py\", line 20 in <module>\n"},
	{"python_stack/py_spy",
         "[{\"os_thread_id\":7,\"frames\":[{\"name\":\"f\",\"short_filename\":\"a.py\",\"line\":3}]}]"},
	{"steps/two", "{\"steps\":[[3,41,1500000,250000,1000000,0.75,125000,1,2.5,null,[[\"tp\",96,500000,65536]]],"
                      "[4,41,null,0,0,null,0,0,\"nan\",\"inf\",[[\"pp 0>1\",2,null,0],[\"world\",1,3,16]]]]}"},
	{"calls/two", "{\"calls\":[[3,\"tp\",1234,65536,5000000,5000001,5250000],[4,\"pp 0>1\",1,0,0,0,0]]}"},
	{"stacks/one",
         "{\"attempt_id\":\"6f1c5b5e-4a53-4c8e-9a39-3a8c2b1d0e4f\",\"node\":\"n2\",\"stacks_id\":17,\"ranks\":[{"
         "\"rank\":2,"
         "\"pid\":71,\"state\":\"T\",\"note\":\"\",\"left_out\":1,\"threads\":[{\"pid\":71,\"tid\":72,\"name\":\"a\","
         "\"state\":\"S\",\"waits_in\":\"f\",\"frames\":[\"g+0x1 "
         "(h)\"]}],\"calls\":[[\"send\",\"pp\",4,512,0.5,null]]}]}"},
	{"spans/rank",
         "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"r\",\"node\":\"n\",\"ranks\":2}}"},
	{"spans/track", "{\"ph\":\"M\",\"pid\":1,\"tid\":4,\"name\":\"thread_name\",\"args\":{\"name\":\"world\"}}"},
	{"spans/call", "{\"ph\":\"X\",\"pid\":1,\"tid\":4,\"name\":\"send\",\"ts\":1.5,\"dur\":2,\"args\":{\"step\":3,"
                       "\"seq\":9,\"bytes\":64}}"},
	{"metrics_line/two", "{\"step\": 1, \"time\": 1790000000.5, \"loss\": NaN, \"\\u001b[1mx\": -Infinity}\n"
                             "{\"step\": 1, \"checkpoint\": \"/c\"}\n"},
	{"value_merge/three", "abcdefghijklmnopqr"},
	{"pattern/named", "it(?P<step>\\d+)|[^a-c\\x41]{2,3}?\\b$\nit5"},
	{"stdout_line/bars", " iteration  10/ 100 | elapsed time per iteration (ms): 123.4 | lm loss: 9.1E+00 |\n"
                             "iteration: 3 / 15 | lm_loss: 5.76K | eta: 0:00:01\n"},
	{"stdout_line/words", "\x1b[31mstep:  1  \x1b[32mloss:  8.1  memory:  1.2GiB(1.3%)  tps: 1,234\n"},
	{"stdout_line/dict", "{'loss': '1.5', 'epoch': 0.5}\n\r 33%|#   | 4/12 [00:00<00:00, 51.45it/s]\n"
                             "Epoch 1:  40%|##  | 4/10 [00:00<00:00, 9it/s, v_num=0, loss=2.3]\r"},
	{"first_exit/killed", "loss 2.5srun: error: n3: task 5: Killed\n"},
	{"first_exit/code", "srun: error: n[08-10,12]: tasks 0-3,7: Exited with exit code 7\n"},
	{"first_exit/core", "a\nsrun: error: n1: tasks 0-1: Segmentation fault (core dumped)\n"},
	{"first_exit/fence",
         "mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [0]: pmixp_coll_ring.c:741: 0x7f: collective timeout seq=1\n"},
	{"first_exit/ended", "srun: error: Node failure on n3\nsrun: error: n1: task 0: Terminated\n"},
	{"error_line/python", "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"t.py\", line 7, in main\n"
                              "[rank3]: ValueError: loss\n"},
	{"error_line/chained",
         "Traceback (most recent call last):\nKeyError: 'x'\n\nThe above exception was the direct cause of the "
         "following exception:\n\nTraceback (most recent call last):\nValueError: loss\n"},
	{"error_line/table", "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
                             "  exitcode  : -9 (pid: 7) (SIGKILL)\n  traceback : Signal 9 (SIGKILL) received by PID 7\n"
                             "=====\n"},
	{"error_line/terminate",
         "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no device\n"},
	{"error_line/mpi", "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n"},
	{"error_line/file",
         "{\"message\":{\"message\":\"ValueError: loss\",\"extraInfo\":{\"py_callstack\":\"Traceback "
         "(most recent call last):\\nValueError: loss\\n\"}}}"},
	{"logs/labelled", "03: a\x1b[1;31mred\x1b[0m\n13: b\n 3: \xc3\xa4\x1b[2J\nsrun: error: x\n"},
	{"logs/pattern", "/a-%j/%5t.%N.%n.%s.%J.%A.%a.%u.%x.%%"},
	{"launcher/torchrun", "env\nA=1\ntorchrun\n--nnodes\n4\n--rdzv-b=c10d\n-r3\n--\ntrain.py\n--nnodes\n4"},
	{"launcher/accelerate",
         "python3\n-u\n-m\naccelerate.commands.launch\n--num_processes=8\n--num_machines\n2\nt.py"},
	{"trainer_words/megatron",
         "Mtorchrun\n--nnodes\n4\np.py\n--tensor-model-parallel-size\n8\n--sequence-parallel\n"
         "--recompute-granularity=full\n--recompute-modules\nmoe_act\nmlp,moe\n--no-overlap-p2p-communication\n-x\n$A"},
	{"trainer_words/nemo", "Nnemo\n++model.tensor_model_parallel_size=4\nmodel.sequence_parallel=False\n"
                               "virtual_pipeline_model_parallel_size=null\nx.y=1"},
	{"trainer_words/torchtitan", "T-m\ntorchtitan.train\n--parallelism.data_parallel_shard_degree\n-1\n"
                                     "--activation_checkpoint.mode\nselective\n--comm.mode=a"},
	{"launcher/deepspeed", "deepspeed\n--no_ssh\n-H\nhosts\n--node_rank=0\nt.py\n--deepspeed"},
	{"lengths/text", "5\n0\n124913\n"},
	{"lengths/generator", "skewed,seed=7,tail=0.5,count=20"},
	{"topology/two", "# leaves\nSwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8] \\\n LinkSpeed=100\n"
                         "SwitchName=s0 Switches=s[1-2]\n"},
	{"report/run",
         "{\"run_id\":\"7\",\"state\":\"failed\",\"first_step\":1,\"last_step\":40,\"tokens\":9,\"job_name\":\"j\","
         "\"policy\":{\"x\":[1]},"
         "\"steps\":[{\"step\":1,\"loss\":2,\"tokens\":4,\"time\":1e9,\"parts\":{\"forward_s\":0.1,\"backward_s\":0.2}}"
         ",{\"step\":7}],"
         "\"attempts\":[{\"step_s\":1,\"nodes\":[\"n1\"],\"layout\":{\"tp\":1,\"cp\":1,\"pp\":2,\"dp\":1},\"plan\":{"
         "\"layout\":{\"pp\":2},"
         "\"interleave\":2,\"micro_batches\":4,\"head_stages\":\"all\",\"step_s\":2}}],\"faults\":[{\"node\":\"n1\","
         "\"cause\":true}],"
         "\"verdicts\":[{\"state\":\"over\"}],\"steps_missing\":[{\"attempt\":1}],\"save_interval\":{\"interval_s\":1,"
         "\"now_s\":9},"
         "\"columns\":[\"rank\",\"node\",\"late_us\"],\"ranks\":[[0,0,5],[1,0,null]],\"nodes\":[\"n1\"]}"},
	{"records/plan_switches",
         PLAN_HEAD "{\"layout\":{\"tp\":2,\"cp\":1,\"pp\":1,\"dp\":3},\"idle_ranks\":2,\"idle\":\"n4\",\"placement\":["
                   "{\"switch\":\"s1\",\"nodes\":\"n[1,3]\",\"first_rank\":0,\"ranks\":4},"
                   "{\"switch\":\"s2\",\"nodes\":\"n2\",\"first_rank\":4,\"ranks\":2}]}" PLAN_TAIL},
	{"records/followed",
         "{\"attempt_id\":\"01234567-89ab-cdef-0123-456789abcdef\",\"source\":\"run\",\"job_id\":12,\"first_seq\":1,"
         "\"records\":[{\"seq\":1,\"time\":1790000000.5,\"type\":\"followed\",\"data\":{\"step\":20,\"is_step\":true,"
         "\"is_of_attempt\":false,\"source\":\"stdout\",\"stream\":0,\"generation\":0,\"at\":1234,\"span\":10,"
         "\"interval_s\":5.2,\"values\":{\"loss\":2.31,\"eval/loss\":\"nan\",\"x\":\"-inf\"}}}]}"},
	{"records/plan_local",
         PLAN_HEAD "{\"layout\":{\"tp\":2,\"cp\":1,\"pp\":1,\"dp\":2},\"idle_ranks\":5,\"idle\":\"n3\","
                   "\"idle_local_ranks\":[{\"nodes\":\"n[1-2]\",\"first\":2,\"last\":2}],"
                   "\"placement\":[{\"switch\":\"\",\"nodes\":\"n[1-2]\",\"first_rank\":0,\"ranks\":4}]}" PLAN_TAIL},
	{"records/plan_recorded",
         PLAN_HEAD "{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":3},\"placement\":["
                   "{\"switch\":\"s1\",\"nodes\":\"n[1-2]\",\"first_rank\":0,\"ranks\":3}]}" PLAN_TAIL},
	{"machine/box", "{\"name\":\"box\",\"gpus_per_node\":8,\"peak_flops\":1e15,\"fp8_rate\":1.8,\"link_nodes\":18,"
                        "\"gemm_efficiency\":0.7,"
                        "\"attention_efficiency\":0.6,\"attention_backward_efficiency\":0.5,"
                        "\"attention_tile_tokens\":128,\"attention_overhead_keys\":200,\"memory_bytes\":8e10,"
                        "\"memory_bytes_per_s\":3e12,\"node_link\":{\"bytes_per_s\":4e11,\"latency_s\":3e-6},"
                        "\"network_link\":{\"bytes_per_s\":5e10,\"latency_s\":1e-5},\"switch_taper\":1,"
                        "\"switch_latency_s\":0,\"gemm_curve\":{\"at\":[128,4096],\"value\":[0.5,0.7]},"
                        "\"sources\":{\"peak_flops\":\"assumed\"}}"},
	{"machine/measured", MEASURED},
	{"machine/trainer",
         "{\"name\":\"x\",\"program\":\"megatron\",\"attention\":\"te\",\"tp_overlap\":0.5,\"cp_overlap\":0,"
         "\"overlap_gradients\":true,\"overlap_parameters\":true,\"overlap_pp\":true,"
         "\"fp8_parameters\":false,\"fp8_inputs\":true,\"gradient_type\":\"float32\",\"keep_outputs\":false,\"release_"
         "activations\":false,"
         "\"whole_rows\":false,\"early_stop\":true,\"owned_tensors\":true,\"fused_loss\":true,\"elementwise\":1,"
         "\"growth\":0.01,\"eager\":false,\"keep_gradients\":true,"
         "\"gather_masters\":false,\"optimizer_bytes\":8,\"logit_bytes\":6,\"fragmentation\":0.06,\"context_bytes\":"
         "5e8,"
         "\"rows_by_rank\":true,\"exchange_processors\":32,"
         "\"products\":{\"H100\":1.1},"
         "\"sources\":{\"attention\":\"a\",\"tp_overlap\":\"a\",\"cp_overlap\":\"a\","
         "\"overlap_gradients\":\"a\",\"overlap_parameters\":\"a\",\"overlap_pp\":\"a\","
         "\"fp8_parameters\":\"a\",\"fp8_inputs\":\"a\",\"gradient_type\":\"a\",\"keep_outputs\":\"a\",\"release_"
         "activations\":\"a\","
         "\"whole_rows\":\"a\",\"early_stop\":\"a\",\"owned_tensors\":\"a\",\"fused_loss\":\"a\",\"elementwise\":\"a\","
         "\"growth\":\"a\",\"eager\":\"a\","
         "\"keep_gradients\":\"a\",\"gather_masters\":\"a\",\"optimizer_bytes\":\"a\",\"logit_bytes\":\"a\","
         "\"fragmentation\":\"a\",\"context_bytes\":\"a\",\"rows_by_rank\":\"a\","
         "\"exchange_processors\":\"a\",\"products\":\"a\"}}"},
	{"machine/published",
         "{\"sources\":[{\"sets_constants\":false,\"steps\":[[\"H100\",\"nemo\",8192,8,1.1],"
         "[\"H100\",\"nemo\",8192,8,0.9],[\"H100\",\"nemo\",8192,8,1],[\"H100\",\"nemo\",8192,8,1]]}]}"},
	{"calibration/one",
         "{\"node_type\":\"some processor x 8\",\"ranks_per_node\":2,\"job_id\":12,\"nodes\":[\"n1\",\"n2\"],"
         "\"machine\":" MEASURED "}"},
	{"json_string/text", "n\xc3\xb6\"\\\n\xff"},
	{"text/some", "n\xc3\xb6\xe2\x80\xae\xf0\x9f\x98\x80\n\x1b\xed\xa0\x80\xff"},
	{"records/some",
         "{\"attempt_id\":\"01234567-89ab-cdef-0123-456789abcdef\",\"source\":\"rank0\",\"job_id\":12,\"first_seq\":1,"
         "\"records\":[{\"seq\":1,\"time\":1790000000.5,\"type\":\"attempt\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,"
         "\"pp\":1,\"dp\":1},\"world_size\":1,\"rank_map\":[{\"rank\":0,\"node\":\"n1\",\"local_rank\":0}],"
         "\"model\":{\"parameters\":10},\"seq_length\":8,\"global_batch_size\":2,\"train_iters\":5,"
         "\"dtype\":\"float32\",\"device\":\"cpu\",\"resumed_step\":0,\"checkpoint\":null}},"
         "{\"seq\":2,\"time\":1790000001,\"type\":\"step\",\"data\":{\"step\":1,\"loss\":2.5,\"grad_norm\":0.8,"
         "\"lr\":0.001,\"tokens\":16,\"documents\":2,\"step_time_s\":0.5,\"tokens_per_s\":32}},"
         "{\"seq\":3,\"time\":1790000001,\"type\":\"checkpoint\",\"data\":{\"step\":1,\"path\":\"p\",\"bytes\":3,"
         "\"duration_s\":0.1}},"
         "{\"seq\":4,\"time\":1790000001,\"type\":\"fault\",\"data\":{\"kind\":\"rank_lost\",\"rank\":1,"
         "\"node\":\"n1\",\"step\":1,\"detail\":\"d\"}},"
         "{\"seq\":5,\"time\":1790000001,\"type\":\"event\",\"data\":{\"kind\":\"k\",\"detail\":\"d\"}},"
         "{\"seq\":6,\"time\":1790000001,\"type\":\"gpus\",\"data\":{\"kinds\":[{\"model\":\"m\",\"memory_bytes\":1,"
         "\"driver\":\"1.2\",\"driver_cuda\":\"13.0\",\"cuda\":\"13.0\",\"gpus\":1}],\"devices\":[0],\"ranks_per_gpu\":"
         "1}},"
         "{\"seq\":7,\"time\":1790000001,\"type\":\"attempt_end\",\"data\":{\"state\":\"complete\",\"exit_code\":0,"
         "\"reason\":\"\"}}]}"},
};

static void seed_texts(void)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check(wlb_file_write(texts[i].path, texts[i].text, strlen(texts[i].text), 0644, &error));
}

/* Events of one scalar, as a float and as a tensor. */
static void seed_events(void)
{
	static const char simple[] = "\x09\0\0\0\0\0\0\xf0\x3f\x10\x02\x2a\x0a\x0a\x08\x0a\x01"
				     "a\x15\0\0\x20\x40";
	static const char tensor[] = "\x10\x02\x2a\x10\x0a\x0e\x0a\x01"
				     "a\x42\x09\x08\x01\x12\0\x22\x04\0\0\x20\x40";
	check(wlb_file_write("event_message/simple", simple, sizeof(simple) - 1, 0644, &error));
	check(wlb_file_write("event_message/tensor", tensor, sizeof(tensor) - 1, 0644, &error));
}

/* What is said for the three texts of fuzz_tokenizer.c. */
static void seed_reply(const char *path, const char *reply, size_t bytes)
{
	static const char facts[] =
		"{\"file\":\"f\",\"sha256\":\"0123456789012345678901234567890123456789012345678901234567890123\","
		"\"library\":\"l 1\",\"vocabulary\":9,\"ids\":9,\"eod\":8,\"bos\":null}";
	char said[sizeof(facts) + 64] = {(char)(sizeof(facts) - 1)};
	memcpy(said + 4, facts, sizeof(facts) - 1);
	memcpy(said + 4 + sizeof(facts) - 1, reply, bytes);
	check(wlb_file_write(path, said, 4 + sizeof(facts) - 1 + bytes, 0644, &error));
}

/* Of conversations the first id is one of an answer, and a reason of one byte follows. */
static void seed_tokenizer(void)
{
	static const char texts[] = "\3\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\1\0\0";
	static const char conversations[] = "\3\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\7\0\0\x80\0\0\0\0\1\0\0\0\1\0\0\0x";
	seed_reply("tokenizer/good", texts, sizeof(texts));
	seed_reply("tokenizer/conversations", conversations, sizeof(conversations) - 1);
}

static void seed_index(void)
{
	static const int32_t tokens[20] = {1, 2, 3};
	struct wlb_index_writer *writer = wlb_index_writer_new("index/x", WLB_INDEX_UINT16, &error);
	check(writer ? 0 : -1);
	for (int32_t length = 0; length < 8; length++)
		check(wlb_index_writer_add(writer, tokens, &length, 1, &error));
	check(wlb_index_writer_commit(writer, "{}", &error));
	wlb_index_writer_free(writer);
	check(remove("index/x.bin"));
}

/* The same index, and one with more sequences than any address can have bytes. */
static void seed_lengths(void)
{
	static const uint64_t sequences = UINT64_C(0xffffffffffff3131);
	unsigned char data[4096];
	FILE *in = fopen("index/x.idx", "rb");
	check(in != NULL ? 0 : -1);
	size_t bytes = fread(data, 1, sizeof(data), in);
	fclose(in);
	check(wlb_file_write("lengths/index", data, bytes, 0644, &error));
	memcpy(data + 18, &sequences, sizeof(sequences));
	check(wlb_file_write("lengths/too_many", data, bytes, 0644, &error));
}

/* The index of four shards of a folder, and a manifest that lists it in place of the shards. */
static void seed_shard_index(const char *folder, const struct wlb_checkpoint_facts *facts)
{
	struct wlb_weights weights = {0};
	int64_t bytes = 0;
	check(wlb_shard_index_write(folder, 0, 4, &error));
	check(wlb_shard_indexes_collect(folder, 4, &weights, &bytes, &error));
	check(wlb_weights_finish(&weights, &error));
	check(wlb_manifest_write("manifest", facts, &weights, 6, &bytes, &error));
	check(rename("manifest/" WLB_MANIFEST_NAME, "manifest/indexed.json"));
	wlb_weights_free(&weights);
}

/* A checkpoint of one tensor, cut into four; its files are the seeds. */
static void seed_checkpoint(void)
{
	static float values[8];
	const struct wlb_tensor_part parts[] = {{"w", WLB_FLOAT32, {2, 4, 4, 0, 4, 1, 2}, {0, 0}, values, 0},
	                                        {"v", WLB_FLOAT32, {1, 9, 1, 3, 4, 0, 1}, {0, 0}, values, 0}};
	const struct wlb_checkpoint_facts facts = {.step = 3,
	                                           .seq_length = 8,
	                                           .global_batch_size = 2,
	                                           .hyper = {.lr = 1e-3, .adam_eps = 1e-8},
	                                           .has_hyper = 1,
	                                           .model = {.hidden_size = 64,
	                                                     .intermediate_size = 128,
	                                                     .num_hidden_layers = 2,
	                                                     .num_attention_heads = 4,
	                                                     .num_key_value_heads = 2,
	                                                     .head_dim = 16,
	                                                     .vocab_size = 257,
	                                                     .max_position_embeddings = 2048,
	                                                     .rope_theta = 10000.0,
	                                                     .rms_norm_eps = 1e-6}};
	const struct wlb_save_place place = {"manifest", "seeds", 1, 0};
	char path[4096];
	int64_t bytes;
	check(whole_shard_write("safetensors/two", parts, 2, &error));
	check(wlb_checkpoint_begin(&place, 3, &error));
	for (int i = 0; i < 4; i++) {
		const struct wlb_tensor_part part = {"w",    WLB_FLOAT32, {2, 4, 2, i / 2 * 2, 2, i % 2, 1},
		                                     {0, 0}, values,      0};
		check(whole_shard_save(&place, 3, i, &part, 1, &error));
	}
	check(wlb_checkpoint_write_packer(&place, 3, "packer", 6, &error));
	check(wlb_checkpoint_commit(&place, &facts, 4, 0, path, &bytes, &error));
	check(rename("manifest/step_00000003/manifest.json", "manifest/good.json"));
	seed_shard_index("manifest/step_00000003", &facts);
	check(rename("manifest/step_00000003/index.json", "shard_index/good.json"));
	for (int i = 0; i < 4; i++) {
		char shard[64];
		snprintf(shard, sizeof(shard), "manifest/step_00000003/shard_%05d.safetensors", i);
		check(remove(shard));
	}
	check(remove("manifest/step_00000003/packer.bin"));
	check(remove("manifest/step_00000003"));
}

int main(int argc, char **argv)
{
	static const char *const targets[] = {
		"index",       "safetensors", "manifest",     "model_config", "jsonl",       "policy",
		"http",        "records",     "spool",        "settings",     "json_string", "lengths",
		"machine",     "topology",    "first_exit",   "calibration",  "verdict",     "activities",
		"on_fault",    "steps",       "stacks",       "calls",        "links",       "node_check",
		"kernel_log",  "text",        "error_line",   "launcher",     "processes",   "python_stack",
		"logs",        "spans",       "metrics_line", "pattern",      "stdout_line", "event_message",
		"value_merge", "shard_index", "published",    "tokenizer",    "report",      "trainer_words"};
	if (argc != 2)
		return 2;
	check(wlb_dir_make(argv[1], 0755, &error));
	if (chdir(argv[1]) < 0)
		return 1;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		check(wlb_dir_make(targets[i], 0755, &error));
	seed_texts();
	seed_events();
	seed_tokenizer();
	seed_index();
	seed_lengths();
	seed_checkpoint();
	return 0;
}
