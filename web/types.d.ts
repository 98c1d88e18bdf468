// SPDX-License-Identifier: Apache-2.0
// Written by scripts/make_page_types.mjs from docs/schema and web/schema. Do not edit.

interface BandwidthPageFinding {
  cause: string;
  /** One sentence. */
  headline: string;
  file: string;
  excerpt: string;
  hosts: string[];
}

interface BandwidthPageSweepPoint {
  bytes: number;
  in_place: boolean;
  time_us?: number | null;
  bus_gbs?: number | null;
  measurements: number | null;
  iterations: number | null;
  algorithm_gbs?: number | null;
  min_us?: number | null;
  max_us?: number | null;
  spread?: number | null;
  median_us?: number | null;
  p95_us?: number | null;
  p99_us?: number | null;
}

interface BandwidthPageSweepFitSegment {
  first_bytes: number;
  last_bytes: number;
  alpha_us: number | null;
  alpha_error_us: number | null;
  tells_alpha: boolean;
  tells_bandwidth: boolean;
  bandwidth_gbs: number | null;
  bandwidth_error_gbs: number | null;
  beta_us_per_byte: number | null;
  r_squared: number | null;
  mean_error: number | null;
  worst_error: number | null;
  worst_bytes: number;
  sizes: number | null;
}

interface BandwidthPageSweepFit {
  r_squared: number | null;
  mean_error: number | null;
  worst_error: number | null;
  worst_bytes: number;
  noise: number | null;
  segments: BandwidthPageSweepFitSegment[];
}

interface BandwidthPageSweepOutlier {
  bytes: number;
  kind: string;
  factor: number | null;
  slow: number | null;
  of: number | null;
}

interface BandwidthPageSweepModelPoint {
  bytes: number;
  measured_us: number | null;
  predicted_us: number | null;
  measured_gbs: number | null;
  predicted_gbs: number | null;
  share: number | null;
  algorithm: string;
  protocol: string;
}

interface BandwidthPageSweepModelWaterfallStep {
  step: string;
  lost_gbs: number | null;
  left_gbs: number | null;
  taken_by: string;
}

interface BandwidthPageSweepModelWaterfall {
  bytes: number;
  top: string;
  line_gbs: number | null;
  measured_gbs: number | null;
  missing: string;
  steps: BandwidthPageSweepModelWaterfallStep[];
}

interface BandwidthPageSweepModel {
  communicator: string;
  share: number | null;
  large_sizes: number | null;
  latency_ratio: number | null;
  assumptions: string[];
  /** One per operation and size. */
  points: BandwidthPageSweepModelPoint[];
  waterfall: BandwidthPageSweepModelWaterfall;
}

interface BandwidthPageSweep {
  tool: string;
  operation: string;
  ranks: number;
  hosts: string[];
  type: string;
  library: string;
  algorithm: string;
  protocol: string;
  way_assumed: boolean;
  device: string;
  link: string;
  from: string;
  to: string;
  runs: number | null;
  file: string;
  /** One per operation and size. */
  points: BandwidthPageSweepPoint[];
  fit?: BandwidthPageSweepFit;
  outliers: BandwidthPageSweepOutlier[];
  out_of_place_over_in_place?: number | null;
  is_normal?: string;
  model?: BandwidthPageSweepModel;
  /** What was measured, in words. */
  title: string;
}

interface BandwidthPageStream {
  tool: string;
  operation: string;
  from: string;
  to: string;
  error: string;
  sent_gbs: number | null;
  received_gbs: number | null;
  median_gbs: number | null;
  p5_gbs: number | null;
  least_gbs: number | null;
  most_gbs: number | null;
  lost_share?: number | null;
  dips: number | null;
  intervals: (number | null)[];
  spread?: number | null;
  retransmits?: number | null;
  slower_from_interval?: number;
}

interface BandwidthPageMatriceSlowItem {
  name: string;
  share: number | null;
  value: number | null;
  expected: number | null;
}

interface BandwidthPageMatrice {
  tool: string;
  operation: string;
  title: string;
  unit: string;
  rows: string[];
  columns: string[];
  cells: ((number | null)[])[];
  typical: number | null;
  sum: number | null;
  levels: (number | null)[];
  slow: BandwidthPageMatriceSlowItem[];
  /** Indices, from 0. */
  slow_rows: number[];
  /** Indices, from 0. */
  slow_columns: number[];
  /** Indices, from 0. */
  slow_members: number[];
  /** Row and column. */
  slow_cells: number[][];
}

interface BandwidthPageBetterItemCell {
  bytes: number;
  chosen: string;
  chosen_us: number | null;
  algorithm: string;
  protocol: string;
  better_us: number | null;
  gain: number | null;
  noise: number | null;
  calls: number;
  /** Calls of about this size in a training step, from traces among the files; 0 where none tells. */
  calls_per_step: number;
}

interface BandwidthPageBetterItem {
  operation: string;
  ranks: number;
  nodes: number;
  ways: number;
  /** What two runs of the same algorithm and protocol differ by, as a share; 0 where nothing was measured twice. */
  run_noise: number;
  cells: BandwidthPageBetterItemCell[];
}

interface BandwidthPageRemark {
  code: string;
  message: string;
  file: string;
}

interface BandwidthPage {
  schema: "tacet.bandwidth.v1";
  /** Worst first. A healthy job has none above note. */
  findings: BandwidthPageFinding[];
  sweeps: BandwidthPageSweep[];
  streams: BandwidthPageStream[];
  matrices: BandwidthPageMatrice[];
  /** Sizes at which a forced algorithm or protocol was faster than NCCL's own choice. */
  better: BandwidthPageBetterItem[];
  remarks: BandwidthPageRemark[];
}

interface ComparisonLine {
  name: string;
  result: string;
  summary: boolean;
  count_a: number;
  count_b: number;
  mean_a_ns: number | null;
  mean_b_ns: number | null;
  change: number | null;
  interval: (number | null)[];
  p: number | null;
  adjusted_p: number | null;
  bus_gbs_a?: number | null;
  bus_gbs_b?: number | null;
}

interface Comparison {
  schema: "tacet.compare.v1";
  a: string;
  b: string;
  differs: boolean;
  regressed: boolean;
  /** One sentence. */
  headline: string;
  alpha: number | null;
  min_change: number | null;
  tested: number;
  slower: number;
  faster: number;
  /** One per part of the step and per operation, size and group. */
  lines: ComparisonLine[];
  /** Who makes the others wait in which of the runs; a sentence each. */
  stragglers: string[];
  faults: string[];
  remarks: string[];
}

interface ProfileJobVerdict {
  kind: string;
  /** One sentence. */
  headline: string;
}

interface ProfileJobAdviceItem {
  what: string;
  why: string;
  gain: number | null;
  at_most: boolean;
  /** 95 % interval of the gain; null where it is not known. */
  gain_low: number | null;
  gain_high: number | null;
}

interface ProfileJobMeanBudget {
  step_ns: number | null;
  compute_only_ns: number | null;
  hidden_ns: number | null;
  exposed_ns: number | null;
  copies_ns: number | null;
  idle_ns: number | null;
  host_wait_ns: number | null;
  launch_ns: number | null;
  data_wait_ns: number | null;
}

interface ProfileJobRankMemorySplit {
  parameter_bytes: number;
  staying_bytes: number;
  passing_bytes: number;
  gradient_bytes: number;
}

interface ProfileJobRankMemory {
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  lowest_allocated_bytes: number;
  device_bytes: number;
  peak_step: number | null;
  peak_phase: string;
  split: ProfileJobRankMemorySplit | null;
  fragmentation: number | null;
  out_of_memory: boolean;
  pressure: boolean;
}

interface ProfileJobRank {
  rank: number;
  host: string;
  device: string;
  steps: number;
  cut: boolean;
  budget: ProfileJobMeanBudget;
  hidden_fraction: number | null;
  overlap_efficiency: number | null;
  memory: ProfileJobRankMemory | null;
}

interface ProfileJobCommunicationItem {
  group: string;
  members: string;
  group_size: number;
  several_hosts: boolean;
  operation: string;
  size_class: number | null;
  calls: number;
  bytes: number;
  wait_ns: number | null;
  transfer_ns: number | null;
  wait_share: number | null;
  algorithm_gbs: number | null;
  bus_gbs: number | null;
  best_bus_gbs: number | null;
  peak_gbs: number | null;
  share_of_peak: number | null;
}

interface ProfileJobGroup {
  group: string;
  groups: number;
  ranks: number;
  calls: number;
  share: number | null;
}

interface ProfileJobClocksRank {
  rank: number;
  offset_ns: number | null;
  drift: number | null;
  error_ns: number | null;
  spread_ns: number | null;
  operations: number;
  applied: boolean;
}

interface ProfileJobClocks {
  reference: number | null;
  worst_error_ns: number | null;
  ranks: ProfileJobClocksRank[];
}

interface ProfileJobStragglersFoundItem {
  rank: number;
  pattern: string;
  origin: string;
  /** That the rank is late. Its cost has an interval of its own: cost_low to cost_high. */
  confidence: "certain" | "likely" | "possible";
  share: number | null;
  cost: number | null;
  cost_low: number | null;
  cost_high: number | null;
  z: number | null;
  late_ns: number | null;
  late_steps: number;
  steps: number;
  explained: number | null;
}

interface ProfileJobStragglersRank {
  rank: number;
  operations: number;
  last: number;
  share: number | null;
  mean_ns: number | null;
  worst_ns: number | null;
  z: number | null;
}

interface ProfileJobStragglers {
  cost_share: number | null;
  lost_throughput: number | null;
  smallest_cost: number | null;
  false_alarm_rate: number | null;
  source: string;
  operations: number;
  found: ProfileJobStragglersFoundItem[];
  ranks: ProfileJobStragglersRank[];
}

interface ProfileJobPipelineByStageItem {
  stage: number;
  ranks: number[];
  compute_ns: number | null;
  waiting_ns: number | null;
  idle_ns: number | null;
}

interface ProfileJobPipeline {
  stages: number;
  microbatches: number;
  chunks: number;
  replicas: number;
  schedule: string;
  bubble: number | null;
  theoretical_bubble: number | null;
  idle: number | null;
  heaviest_stage: number;
  imbalance: number | null;
  balance_gain: number | null;
  by_stage: ProfileJobPipelineByStageItem[];
}

interface ProfileJobWhatIfItem {
  valid: boolean;
  problem: string;
  dp_size: number;
  stages: number;
  chunks: number;
  steps: number;
  dropped_steps: number;
  missing: any[];
  recorded_ns: number | null;
  replayed_ns: number | null;
  ideal_ns: number | null;
  slowdown: number | null;
  by_operation: Record<string, number | null>;
  by_dp_rank: (number | null)[];
  by_stage: (number | null)[];
  worst_dp_rank: number;
  worst_stage: number;
  worst_workers: number | null;
  m_w: number | null;
  m_s: number | null;
}

interface ProfileJobDdpBucket {
  bytes: number;
  ready_ns: number | null;
  start_ns: number | null;
  end_ns: number | null;
  transfer_ns: number | null;
}

interface ProfileJobDdpPrediction {
  bucket_cap_mb: number | null;
  buckets: number;
  step_ns: number | null;
}

interface ProfileJobDdp {
  group: string;
  gradient_bytes: number;
  step_ns: number | null;
  predicted_ns: number | null;
  latency_ns: number | null;
  latency_measured: boolean;
  per_byte_ns: number | null;
  buckets: ProfileJobDdpBucket[];
  predictions: ProfileJobDdpPrediction[];
  recommended_bucket_cap_mb: number | null;
  gain: number | null;
}

interface ProfileJobFsdpUnit {
  bytes: number;
  gathers: number | null;
  gather_ns: number | null;
  hidden: number | null;
}

interface ProfileJobFsdp {
  group: string;
  ranks: number;
  parameter_bytes: number;
  parameters_known: boolean;
  kept_bytes: number;
  gather_bytes: number;
  expected_gather_bytes: number;
  gather_ratio: number | null;
  scatter_bytes: number;
  expected_scatter_bytes: number;
  scatter_ratio: number | null;
  hidden_gathers: number | null;
  hidden_scatters: number | null;
  units: ProfileJobFsdpUnit[];
}

interface ProfileJobAllToAllMember {
  rank: number;
  sent_bytes: number;
  received_bytes: number;
  kernel_ns: number | null;
  wait_ns: number | null;
}

interface ProfileJobAllToAll {
  group: string;
  ranks: number;
  calls: number;
  sized: boolean;
  imbalance: number | null;
  lasting_imbalance: number | null;
  busiest: number;
  transfer_ns: number | null;
  transfer_share: number | null;
  balance_gain: number | null;
  members: ProfileJobAllToAllMember[];
}

interface ProfileJobUtilisation {
  source: string;
  mfu: any;
  hfu: number | null;
  flops: number | null;
  peak_tflops: number | null;
}

interface ProfileJob {
  job: string;
  source: string;
  world_size: number;
  ranks_seen: number[];
  /** The ranks of each GPU that several ranks use, as far as the records show it. */
  shared_gpus: number[][];
  /** A sentence about hardware that is not what it seems: ranks that share a GPU, a host that NCCL counts as several. Empty where nothing is known. */
  setup: string;
  steps: number;
  step_ns: number | null;
  /** The answer. findings[0] carries it where there is one. */
  verdict: ProfileJobVerdict;
  advice: ProfileJobAdviceItem[];
  /** Mean of all ranks; the parts add up to step_ns. */
  mean_budget: ProfileJobMeanBudget;
  hidden_fraction: number | null;
  overlap_efficiency: number | null;
  wait_share: number | null;
  communication_efficiency: number | null;
  communication_share: any;
  ranks: ProfileJobRank[];
  communication: ProfileJobCommunicationItem[];
  groups: ProfileJobGroup[];
  clocks: ProfileJobClocks;
  stragglers: ProfileJobStragglers;
  pipeline: ProfileJobPipeline | null;
  what_if: ProfileJobWhatIfItem[];
  replay_compute_share: number | null;
  ddp: ProfileJobDdp | null;
  fsdp: ProfileJobFsdp | null;
  all_to_all: ProfileJobAllToAll | null;
  utilisation: ProfileJobUtilisation | null;
  remarks: string[];
}

interface Profile {
  schema: "tacet.profile.v1";
  /** All jobs in the input; "job" is the one of the verdict. */
  jobs: ProfileJob[];
}

interface ReportVerdictSubject {
  rank: number | null;
  host: string | null;
  pid: number | null;
  device: number | null;
}

interface ReportVerdict {
  status: "hang" | "crash" | "corrupt" | "slow" | "degraded" | "healthy" | "undetermined";
  cause: string | null;
  ranks: number[];
  /** Who is meant, as far as it is known. */
  subjects: ReportVerdictSubject[];
  confidence: "certain" | "likely" | "possible";
  /** What happened, in a sentence or a few. */
  headline: string;
  /** The word over the text report: the status in capitals, NO FAULT FOUND, STOPPED, or NOT STARTED. */
  heading?: string;
}

interface ReportFindingGroup {
  name: string;
  description: string;
  ranks: number[];
}

interface ReportFindingOperation {
  kind: string;
  seq: number | null;
  bytes: number | null;
}

interface ReportFindingEvidenceItem {
  file: string | null;
  line: number | null;
  offset: number;
  excerpt: string;
  says: string;
  /** The cited line as it stands in the file; null where it has no lines or was not read again. */
  quote: string | null;
}

interface ReportFinding {
  cause: string;
  title: string;
  status: "hang" | "crash" | "corrupt" | "slow" | "degraded" | "healthy" | "undetermined";
  severity: "critical" | "warning" | "note";
  confidence: "certain" | "likely" | "possible";
  ranks: number[];
  affected_ranks: number[];
  /** Who is meant, as far as it is known. */
  subjects: ReportVerdictSubject[];
  /** The cause this finding follows from. */
  explained_by: string | null;
  group: ReportFindingGroup | null;
  operation: ReportFindingOperation | null;
  /** One sentence. */
  headline: string;
  explanation: string;
  /** Where it is written: file as named on the command line, line from 1, offset in bytes. */
  evidence: ReportFindingEvidenceItem[];
  fix: string[];
  prevent: string[];
  job: string | null;
}

interface ReportJob {
  label: string | null;
  world_size: number | null;
  ranks_seen: number[];
  hosts: string[];
  groups: ReportFindingGroup[];
  versions: Record<string, string>;
}

interface ReportInput {
  file: string;
  format: string | null;
  rank: number | null;
  bytes: number;
  understood: number;
  ignored: number;
  not_understood: number;
}

interface ReportCannotTellItem {
  question: string;
  missing: string;
}

interface ReportRank {
  rank: number | null;
  host: string | null;
  pid: number | null;
  role: "guilty" | "suspect" | "silent" | "waits" | "ok" | "absent" | "unknown" | null;
  last_operation: string | null;
  doing: string | null;
  last_sign: string | null;
  evidence_kinds: string[];
}

interface ReportWait {
  from: number | null;
  to: number | null;
  where: string;
}

interface ReportDiagnostic {
  severity: "error" | "warning" | "note";
  code: string;
  message: string;
  file: string | null;
  line: number | null;
  hint: string | null;
  count: number;
  files: string[];
}

interface ReportTopologyTransport {
  text: string;
  kind: string;
}

interface ReportTopologyNodeGpu {
  rank: number | null;
  device: number | null;
  bus: string;
  nvlink_gbs: any;
  pci_gbs: number | null;
  nearest: string | null;
  nics: (number | null)[];
  uses: (number | null)[];
  place: number | null;
  cpu: number | null;
}

interface ReportTopologyNodeNic {
  index: number;
  name: string | null;
  link: string | null;
  speed_gbs: number | null;
  nearest: string | null;
  gdr: boolean | null;
  ring_sends: number | null;
  place: number | null;
  cpu: number | null;
}

interface ReportTopologyNode {
  name: string;
  ranks: number[];
  gpu_ranks: (number | null)[];
  like: number;
  guilty: boolean;
  net?: string | null;
  nvlink?: boolean;
  nvswitch?: boolean;
  gpus?: ReportTopologyNodeGpu[];
  nics?: ReportTopologyNodeNic[];
}

interface ReportTopologyCommunicatorGraph {
  name: string;
  channels: number;
  cross_nic: number | null;
  intra_gbs: number | null;
  inter_gbs: number | null;
  type_intra: string | null;
  type_inter: string | null;
  lowered_by: string | null;
}

interface ReportTopologyCommunicatorRing {
  channel: number;
  whole: boolean;
  same_as: number | null;
  order?: number[];
  hops?: (number | null)[];
  ways?: (number | null)[];
  slow?: any[];
  breaks?: any[];
}

interface ReportTopologyCommunicatorTree {
  channel: number;
  same_as: number | null;
  root: number | null;
  parents: number[];
}

interface ReportTopologyCommunicatorWay {
  transport: number | null;
  inside: number | null;
  between: number | null;
}

interface ReportTopologyCommunicator {
  label: string;
  ranks: number | null;
  nodes: number | null;
  seen: number;
  channels: number | null;
  nvls_channels: number | null;
  collnet_channels: number | null;
  mnnvl: boolean;
  connected: string | null;
  graphs: ReportTopologyCommunicatorGraph[];
  rings: ReportTopologyCommunicatorRing[];
  trees: ReportTopologyCommunicatorTree[];
  ways: ReportTopologyCommunicatorWay[];
}

interface ReportTopology {
  transports: ReportTopologyTransport[];
  nodes: ReportTopologyNode[];
  communicators: ReportTopologyCommunicator[];
}

interface ReportWhyClaim {
  rank: number | null;
  /** True: it speaks for the verdict. */
  supports: boolean;
  /** The state of the process that it speaks of, or the cause. */
  reading: string;
  strength: "proof" | "strong" | "weak" | null;
  /** Who says it; null for evidence of the finding itself. */
  witness: "self" | "peer" | "launcher" | "kernel" | "scheduler" | "tool" | "reporter" | null;
  /** Where it is written: file as named on the command line, line from 1, offset in bytes. */
  because: ReportFindingEvidenceItem;
}

interface ReportWhyRival {
  cause: string;
  ranks: number[];
  /** True: a rule found it and it lost; false: nothing shows it. */
  found: boolean;
  because: string;
}

interface ReportWhy {
  /** Where it is written: file as named on the command line, line from 1, offset in bytes. */
  status: ReportFindingEvidenceItem;
  /** What speaks for the verdict and against it. */
  claims: ReportWhyClaim[];
  /** Causes that were not named, and why. */
  rivals: ReportWhyRival[];
}

interface Report {
  schema: "tacet.report.v1";
  /** The answer. findings[0] carries it where there is one. */
  verdict: ReportVerdict;
  /** Worst first. A healthy job has none above note. */
  findings: ReportFinding[];
  job: ReportJob;
  /** understood + ignored + not_understood = bytes, for each file. */
  inputs: ReportInput[];
  /** Questions that stay open, and what would answer them. */
  cannot_tell: ReportCannotTellItem[];
  /** All jobs in the input; "job" is the one of the verdict. */
  jobs: ReportJob[];
  ranks: ReportRank[];
  /** Which rank waits for which. */
  waits: ReportWait[];
  diagnostics: ReportDiagnostic[];
  assumptions: string[];
  /** What reading and judging took. */
  seconds: number | null;
  topology?: ReportTopology;
  /** How the verdict came about; only with --why. */
  why?: ReportWhy;
}

interface ComparisonPage {
  verdict: string;
  budgets: ((string | number | null)[])[];
  schema: "tacet.compare.v1";
  a: string;
  b: string;
  differs: boolean;
  regressed: boolean;
  headline: string;
  alpha: number | null;
  min_change: number | null;
  tested: number;
  slower: number;
  faster: number;
  lines: ComparisonLine[];
  stragglers: string[];
  faults: string[];
  remarks: string[];
}

interface LiveTableItem {
  job: string;
  uid: number | null;
  processes: number;
  processes_live: number;
  status: string;
  cause: string | null;
  headline: string;
  /** No process of it lives; it was judged for the last time. */
  ended: boolean;
  /** Who is at fault. */
  ranks: number[];
  /** Since when that is said of it; of a hang, since when nothing moves. */
  since_wall_ns: number | null;
  host_count: number;
  /** The first few. */
  hosts: string[];
  last_hang: string | null;
}

interface LiveFailingAgent {
  address: string;
  host: string | null;
  error: string;
  failures: number;
}

interface Live {
  job: string | null;
  uid?: number | null;
  hangs?: boolean;
  hangs_since_wall_ns?: number | null;
  suspicions?: any[];
  processes?: number;
  processes_live?: number;
  last_hang?: string | null;
  agents: number;
  agents_reachable: number;
  /** Names. */
  jobs: string[];
  /** The server's clock. */
  wall_ns: number;
  table_left_out: number;
  table: LiveTableItem[];
  /** Why the agents are not known; operators see it. */
  list_error: string | null;
  /** Operators see them. */
  failing_agents: LiveFailingAgent[];
}

interface ProfilePageJobTableItem {
  group: string;
  groups: number;
  ranks: number;
  operation: string;
  size_class: string;
  size: number;
  calls: number;
  bytes: number;
  wait_ns: number;
  transfer_ns: number;
  wait_share: number | null;
  algorithm_gbs: number | null;
  bus_gbs: number | null;
  best_bus_gbs: number | null;
  peak_gbs: number | null;
  several_hosts: boolean;
}

interface ProfilePageJobStraggler {
  rank: number;
  pattern: string;
  origin: string;
  confidence: string;
  share: number | null;
  late_ns: number;
  cost: number | null;
  low: number | null;
  high: number | null;
  z: number | null;
  late_steps: number;
  steps: number;
  dp_rank: number;
  stage: number;
}

interface ProfilePageJobClocks {
  compared: number;
  corrected: number;
  largest_ns: number;
  worst_error_ns: number;
}

interface ProfilePageJob {
  job: string;
  source: string;
  world_size: number;
  ranks_seen: number;
  steps: number;
  step_ns: number;
  verdict: string;
  heading: string;
  headline: string;
  setup: string;
  /** Why no rank is called a straggler and none is cleared; empty where ranks are judged. */
  not_judged: string;
  advice: ProfileJobAdviceItem[];
  hidden_fraction: number | null;
  overlap_efficiency: number | null;
  wait_share: number | null;
  communication_efficiency: number | null;
  communication_share: number | null;
  /** Nanoseconds by part. */
  mean: number[];
  ranks: ((number | null)[])[];
  hosts: string[];
  devices: string[];
  steps_drawn: ((number | null)[])[];
  table_left_out: number;
  table: ProfilePageJobTableItem[];
  groups: ProfileJobGroup[];
  cost_share: number | null;
  operations: number;
  stragglers: ProfilePageJobStraggler[];
  lateness: ((number | null)[])[];
  memory: ((number | boolean | null)[])[];
  pipeline: ProfileJobPipeline | null;
  what_if: ProfileJobWhatIfItem[];
  replay_compute_share: number | null;
  ddp: ProfileJobDdp | null;
  fsdp: ProfileJobFsdp | null;
  all_to_all: ProfileJobAllToAll | null;
  utilisation: ProfileJobUtilisation | null;
  clocks: ProfilePageJobClocks;
  remarks: string[];
}

interface ProfilePage {
  /** Names of the parts of a step. */
  parts: string[];
  jobs: ProfilePageJob[];
  definitions: string[][];
}
