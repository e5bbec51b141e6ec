;; nodes take no instruction that copies; below the constants all bytes are 0
(func $copy (param $to i32) (param $from i32) (param $length i32)
  (loop $next (if (local.get $length) (then
    (i32.store8 (local.get $to) (i32.load8_u (local.get $from)))
    (local.set $to (i32.add (local.get $to) (i32.const 1)))
    (local.set $from (i32.add (local.get $from) (i32.const 1)))
    (local.set $length (i32.sub (local.get $length) (i32.const 1)))
    (br $next)))))
(func $span (param $at i32) (param $length i32) (result i64)
  (i64.or (i64.extend_i32_u (local.get $at)) (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 32))))
(func $at (param $span i64) (result i32) (i32.wrap_i64 (local.get $span)))
(func $length (param $span i64) (result i32) (i32.wrap_i64 (i64.shr_u (local.get $span) (i64.const 32))))

;; how many bytes a compact number takes that begins with this byte
(func $compact_bytes (param $at i32) (result i32)
  (local $mode i32)
  (local.set $mode (i32.and (i32.load8_u (local.get $at)) (i32.const 3)))
  (if (i32.lt_u (local.get $mode) (i32.const 3))
    (then (return (i32.shl (i32.const 1) (local.get $mode)))))
  (i32.add (i32.const 5) (i32.shr_u (i32.load8_u (local.get $at)) (i32.const 2))))

;; the compact number at a place, up to 30 bits
(func $compact (param $at i32) (result i32)
  (local $mode i32)
  (local.set $mode (i32.and (i32.load8_u (local.get $at)) (i32.const 3)))
  (if (i32.eqz (local.get $mode))
    (then (return (i32.shr_u (i32.load8_u (local.get $at)) (i32.const 2)))))
  (if (i32.eq (local.get $mode) (i32.const 1))
    (then (return (i32.shr_u (i32.load16_u (local.get $at)) (i32.const 2)))))
  (if (i32.eq (local.get $mode) (i32.const 3)) (then (unreachable)))
  (i32.shr_u (i32.load (local.get $at)) (i32.const 2)))

;; write a length as a compact number, and give where it ends
(func $write_compact (param $at i32) (param $number i32) (result i32)
  (if (i32.lt_u (local.get $number) (i32.const 64))
    (then
      (i32.store8 (local.get $at) (i32.shl (local.get $number) (i32.const 2)))
      (return (i32.add (local.get $at) (i32.const 1)))))
  (if (i32.lt_u (local.get $number) (i32.const 16384))
    (then
      (i32.store16 (local.get $at) (i32.or (i32.shl (local.get $number) (i32.const 2)) (i32.const 1)))
      (return (i32.add (local.get $at) (i32.const 2)))))
  (i32.store (local.get $at) (i32.or (i32.shl (local.get $number) (i32.const 2)) (i32.const 2)))
  (i32.add (local.get $at) (i32.const 4)))

;; where the bytes end that begin, with their length in front, at a place
(func $after_bytes (param $at i32) (result i32)
  (i32.add (i32.add (local.get $at) (call $compact_bytes (local.get $at))) (call $compact (local.get $at))))

;; what stands under a key, without the mark and the length in front of it; nothing where it is not there
(func $kept (param $key i64) (result i64)
  (local $found i64) (local $at i32)
  (local.set $found (call $storage_get_version_1 (local.get $key)))
  (local.set $at (call $at (local.get $found)))
  (if (i32.eqz (i32.load8_u (local.get $at))) (then (return (i64.const 0))))
  (local.set $at (i32.add (local.get $at) (i32.const 1)))
  (call $span
    (i32.add (local.get $at) (call $compact_bytes (local.get $at)))
    (call $compact (local.get $at))))

;; the same, or one byte 0: an empty list
(func $kept_list (param $key i64) (result i64)
  (local $found i64)
  (local.set $found (call $kept (local.get $key)))
  (if (i64.eqz (local.get $found)) (then (return {NOTHING})))
  (local.get $found))

(func (export "Core_version") (param i32 i32) (result i64) {VERSION})
(func (export "Metadata_metadata") (param i32 i32) (result i64) {METADATA})
(func (export "AccountNonceApi_account_nonce") (param i32 i32) (result i64) {NONCE})

(func $initialize (export "Core_initialize_block") (param $at i32) (param $length i32) (result i64)
  (call $storage_set_version_1 {HEADER} (call $span (local.get $at) (local.get $length)))
  (call $storage_clear_version_1 {EXTRINSICS})
  (call $storage_clear_version_1 {UPWARD})
  (i64.const 0))

;; of the inherent data, the list of identifiers and bytes, what is for the parachain system
(func (export "BlockBuilder_inherent_extrinsics") (param $at i32) (param $length i32) (result i64)
  (local $left i32) (local $end i32) (local $size i32) (local $out i32) (local $to i32)
  (local.set $left (call $compact (local.get $at)))
  (local.set $at (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
  (block $none
    (loop $next
      (br_if $none (i32.eqz (local.get $left)))
      (local.set $end (call $after_bytes (i32.add (local.get $at) (i32.const 8))))
      (if (i64.eq (i64.load (local.get $at)) (i64.const 0x3733333169737973))
        (then
          (local.set $at (i32.add (local.get $at) (i32.const 8)))
          (local.set $at (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
          (local.set $size (i32.sub (local.get $end) (local.get $at)))
          (local.set $out (call $allocator_malloc_version_1 (i32.add (local.get $size) (i32.const 6))))
          (i32.store8 (local.get $out) (i32.const 4))
          (local.set $to
            (call $write_compact (i32.add (local.get $out) (i32.const 1)) (i32.add (local.get $size) (i32.const 1))))
          (i32.store8 (local.get $to) (i32.const 0))
          (local.set $to (i32.add (local.get $to) (i32.const 1)))
          (call $copy (local.get $to) (local.get $at) (local.get $size))
          (return (call $span (local.get $out)
            (i32.sub (i32.add (local.get $to) (local.get $size)) (local.get $out))))))
      (local.set $at (local.get $end))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $next)))
  {NOTHING})

(func $apply (export "BlockBuilder_apply_extrinsic") (param $at i32) (param $length i32) (result i64)
  (local $rest i32) (local $size i32) (local $kind i32) (local $size_so_far i32) (local $all i64)
  (local.set $all (call $span (local.get $at) (local.get $length)))
  (local.set $rest (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
  (local.set $size (i32.sub (i32.add (local.get $at) (local.get $length)) (local.get $rest)))
  (if (i32.eqz (local.get $size)) (then (return {INVALID})))
  (local.set $kind (i32.load8_u (local.get $rest)))
  (local.set $rest (i32.add (local.get $rest) (i32.const 1)))
  (local.set $size (i32.sub (local.get $size) (i32.const 1)))
  (if (i32.eq (local.get $kind) (i32.const 7))
    (then
      (call $storage_set_version_1 {LOST} {LOST})
      (return {INVALID})))
  (call $storage_append_version_1 {EXTRINSICS} (local.get $all))
  (block $done
    (block $10 (block $9 (block $8 (block $6 (block $5 (block $4 (block $3 (block $2 (block $1 (block $0
      (br_table $0 $1 $2 $3 $4 $5 $6 $done $8 $9 $10 $5 (local.get $kind)))
      (call $storage_set_version_1 {INHERENT} (call $span (local.get $rest) (local.get $size))) (br $done))
      (call $storage_set_version_1
        (call $span (local.get $rest) (i32.const 32))
        (call $span (i32.add (local.get $rest) (i32.const 32)) (i32.sub (local.get $size) (i32.const 32))))
      (br $done))
      (call $storage_clear_version_1 (call $span (local.get $rest) (local.get $size))) (br $done))
      (call $default_child_storage_set_version_1 {CHILD}
        (call $span (local.get $rest) (i32.const 32))
        (call $span (i32.add (local.get $rest) (i32.const 32)) (i32.sub (local.get $size) (i32.const 32))))
      (br $done))
      (drop (call $storage_clear_prefix_version_2 (call $span (local.get $rest) (local.get $size)) {NOTHING}))
      (br $done))
      (call $logging_log_version_1 (i32.const 0) {TARGET} {PANIC})
      (unreachable))
      (local.set $size_so_far (call $allocator_malloc_version_1 (i32.const 8)))
      (i64.store (local.get $size_so_far) (call $storage_proof_size_storage_proof_size_version_1))
      (call $storage_set_version_1 {PROOF_SIZE} (call $span (local.get $size_so_far) (i32.const 8)))
      (br $done))
      (drop (call $storage_get_version_1 (call $span (local.get $rest) (local.get $size)))) (br $done))
      (local.set $at (call $allocator_malloc_version_1 (i32.add (local.get $size) (i32.const 4))))
      (local.set $kind (call $write_compact (local.get $at) (local.get $size)))
      (call $copy (local.get $kind) (local.get $rest) (local.get $size))
      (call $storage_append_version_1 {UPWARD}
        (call $span (local.get $at) (i32.sub (i32.add (local.get $kind) (local.get $size)) (local.get $at))))
      (br $done))
      (drop (call $default_child_storage_get_version_1 {CHILD} (call $span (local.get $rest) (local.get $size)))))
  {INCLUDED})

(func $finalize (export "BlockBuilder_finalize_block") (param i32 i32) (result i64)
  (local $header i64) (local $roots i32) (local $extrinsics i32)
  (local.set $header (call $kept {HEADER}))
  (local.set $extrinsics
    (call $trie_blake2_256_ordered_root_version_2 (call $kept_list {EXTRINSICS}) (i32.const 0)))
  (call $storage_clear_version_1 {HEADER})
  (call $storage_clear_version_1 {EXTRINSICS})
  (local.set $roots (i32.add (call $at (local.get $header)) (i32.const 32)))
  (local.set $roots (i32.add (local.get $roots) (call $compact_bytes (local.get $roots))))
  (call $copy (local.get $roots) (call $at (call $storage_root_version_2 (i32.const 1))) (i32.const 32))
  (call $copy (i32.add (local.get $roots) (i32.const 32)) (local.get $extrinsics) (i32.const 32))
  (local.get $header))

;; where a header ends
(func $after_header (param $at i32) (result i32)
  (local $left i32) (local $kind i32)
  (local.set $at (i32.add (local.get $at) (i32.const 32)))
  (local.set $at (i32.add (i32.add (local.get $at) (call $compact_bytes (local.get $at))) (i32.const 64)))
  (local.set $left (call $compact (local.get $at)))
  (local.set $at (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
  (block $end
    (loop $next
      (br_if $end (i32.eqz (local.get $left)))
      (local.set $kind (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (if (i32.and (i32.ge_u (local.get $kind) (i32.const 4)) (i32.le_u (local.get $kind) (i32.const 6)))
        (then (local.set $at (i32.add (local.get $at) (i32.const 4)))))
      (if (i32.ne (local.get $kind) (i32.const 8))
        (then (local.set $at (call $after_bytes (local.get $at)))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $next)))
  (local.get $at))

(func (export "Core_execute_block") (param $at i32) (param $length i32) (result i64)
  (local $from i32) (local $size i32) (local $left i32) (local $end i32) (local $made i32)
  (local.set $from (local.get $at))
  (local.set $at (call $after_header (local.get $at)))
  (local.set $size (i32.sub (local.get $at) (local.get $from)))
  (drop (call $initialize (local.get $from) (local.get $size)))
  (local.set $left (call $compact (local.get $at)))
  (local.set $at (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
  (block $end
    (loop $next
      (br_if $end (i32.eqz (local.get $left)))
      (local.set $end (call $after_bytes (local.get $at)))
      (if (i32.load8_u (call $at (call $apply (local.get $at) (i32.sub (local.get $end) (local.get $at)))))
        (then (unreachable)))
      (local.set $at (local.get $end))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $next)))
  (local.set $made (call $at (call $finalize (i32.const 0) (i32.const 0))))
  (block $same
    (loop $byte
      (br_if $same (i32.eqz (local.get $size)))
      (if (i32.ne (i32.load8_u (local.get $made)) (i32.load8_u (local.get $from))) (then (unreachable)))
      (local.set $made (i32.add (local.get $made) (i32.const 1)))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (local.set $size (i32.sub (local.get $size) (i32.const 1)))
      (br $byte)))
  (i64.const 0))

;; valid: no priority, needs nothing, provides its own hash, for 64 blocks; a source stands in front, the hash behind
(func (export "TaggedTransactionQueue_validate_transaction") (param $at i32) (param $length i32) (result i64)
  (local $out i32) (local $hash i32)
  (local.set $hash (call $hashing_blake2_256_version_1
    (call $span (i32.add (local.get $at) (i32.const 1)) (i32.sub (local.get $length) (i32.const 33)))))
  (local.set $out (call $allocator_malloc_version_1 (i32.const 53)))
  (call $copy (local.get $out) (i32.const 0) (i32.const 53))
  (i32.store16 (i32.add (local.get $out) (i32.const 10)) (i32.const 0x8004))
  (call $copy (i32.add (local.get $out) (i32.const 12)) (local.get $hash) (i32.const 32))
  (i32.store8 (i32.add (local.get $out) (i32.const 44)) (i32.const 64))
  (i32.store8 (i32.add (local.get $out) (i32.const 52)) (i32.const 1))
  (call $span (local.get $out) (i32.const 53)))

(func (export "KeyToIncludeInRelayProof_keys_to_prove") (param i32 i32) (result i64) (call $kept_list {REQUEST}))

;; upward messages, no others, no code, nothing of queues processed, the watermark, and the header as head data
(func (export "CollectCollationInfo_collect_collation_info") (param $at i32) (param $length i32) (result i64)
  (local $upward i64) (local $size i32) (local $out i32) (local $to i32) (local $inherent i32)
  (local.set $upward (call $kept_list {UPWARD}))
  (local.set $size (call $length (local.get $upward)))
  (local.set $out (call $allocator_malloc_version_1
    (i32.add (i32.add (local.get $size) (local.get $length)) (i32.const 14))))
  (call $copy (local.get $out) (call $at (local.get $upward)) (local.get $size))
  (local.set $to (i32.add (local.get $out) (local.get $size)))
  (call $copy (local.get $to) (i32.const 0) (i32.const 10))
  (local.set $inherent (call $at (call $kept {INHERENT})))
  (if (local.get $inherent)
    (then
      (i32.store (i32.add (local.get $to) (i32.const 6)) (i32.load (call $after_bytes (local.get $inherent))))))
  (local.set $to (call $write_compact (i32.add (local.get $to) (i32.const 10)) (local.get $length)))
  (call $copy (local.get $to) (local.get $at) (local.get $length))
  (call $span (local.get $out) (i32.sub (i32.add (local.get $to) (local.get $length)) (local.get $out))))
