<?php
/* A payment service on MariaDB or MySQL that completes its own record (docs/sql-face-mysql.md).

php -S HOST:PORT payments.php           behind a gateway: POST /payments {"amount": 1250}
php payments.php pay SCOPE KEY AMOUNT   without one, from the command line

DATABASE_URL: mysql://USER[:PASSWORD]@HOST:PORT/DATABASE of the gateway's store, with the table of payments-mysql.sql.
DIE_AFTER_COMMIT=1: ends the process after its first commit, before it answers. */
declare(strict_types=1);

const LATE = [31001, 31002];  // Stale; settled.
const JSON = [['Content-Type', 'application/json']];

function connect(): PDO
{
    $url = parse_url(getenv('DATABASE_URL'));
    $place = sprintf('mysql:host=%s;port=%d;dbname=%s;charset=utf8mb4', $url['host'], $url['port'] ?? 3306,
                     ltrim($url['path'], '/'));
    return new PDO($place, rawurldecode($url['user']), rawurldecode($url['pass'] ?? ''),
                   [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function refusal(int $status, string $why, array ...$fields): array
{
    return [$status, array_merge(JSON, $fields), json_encode(['error' => $why])];
}

/** Books a payment and stores its answer (status, headers, body), both or neither. */
function pay(array $attempt, int $amount): array
{
    $payment = 'pay_' . bin2hex(random_bytes(16));
    $headers = [...JSON, ['Location', '/payments/' . $payment]];
    $body = json_encode(['id' => $payment, 'amount' => $amount]);
    try {
        $db = connect();
        $db->beginTransaction();
        $db->prepare('INSERT INTO payments (id, amount) VALUES (?, ?)')->execute([$payment, $amount]);
        $db->prepare("CALL idem_complete(?, ?, ?, ?, ?, ?, '')")
           ->execute([...$attempt, 201, json_encode($headers), $body]);
    } catch (PDOException $error) {
        // No commit was sent, and the error has rolled back: this payment was never made.
        if (in_array($error->errorInfo[1] ?? 0, LATE, true)) {
            return refusal(409, 'too late: the record has another attempt, or its answer');
        }
        error_log($error->getMessage());
        return refusal(503, 'not booked, try again', ['Idem-Outcome', 'not-executed']);
    }
    try {
        $db->commit();
    } catch (PDOException $error) {
        // Only the record knows the outcome. To the gateway a 502 says so, and it reads the record.
        error_log($error->getMessage());
        return refusal(502, 'the payment may be booked');
    }
    if (getenv('DIE_AFTER_COMMIT')) {
        posix_kill(getmypid(), SIGKILL);
    }
    return [201, $headers, $body];
}

function serve(): void
{
    $fields = ['HTTP_IDEM_OPERATION', 'HTTP_IDEM_FENCE', 'HTTP_IDEM_ATTEMPT'];
    $attempt = array_map(fn ($name) => $_SERVER[$name] ?? null, $fields);
    $amount = json_decode(file_get_contents('php://input'), true)['amount'] ?? null;
    if (strtok($_SERVER['REQUEST_URI'], '?') !== '/payments') {
        $answer = refusal(404, 'there is only /payments');
    } elseif (in_array(null, $attempt, true)) {
        $answer = refusal(400, 'payments come through the gateway, with an Idempotency-Key');
    } elseif (!is_int($amount) || $amount <= 0) {
        $answer = refusal(422, 'amount is a positive integer');
    } else {
        $answer = pay($attempt, $amount);
    }
    [$status, $headers, $body] = $answer;
    http_response_code($status);
    foreach ($headers as [$name, $value]) {
        header("$name: $value");
    }
    // By its length the gateway can tell a whole answer from one that was cut.
    header('Content-Length: ' . strlen($body));
    echo $body;
}

function pay_directly(string $scope, string $key, int $amount): int
{
    // The work is one transaction of this database, and only its completion makes it real. So an attempt that crashed
    // before it did nothing (dispatched 0), and the key runs again after its lease.
    $db = connect();
    $db->beginTransaction();
    $reserve = $db->prepare("CALL idem_reserve_with(?, 'create-payment', ?, ?, 60000, 86400000, 2592000000,"
                            . " 'unknown', 0, NULL, '')");
    $reserve->execute([$scope, $key, "amount=$amount"]);
    $record = $reserve->fetch(PDO::FETCH_ASSOC);
    $reserve->closeCursor();
    $db->commit();
    [$status, $body] = [$record['response_status'], $record['response_body']];
    if ($record['outcome'] === 'execute') {
        [$status, , $body] = pay([$record['operation'], $record['fence'], $record['attempt']], $amount);
    } elseif ($record['outcome'] !== 'replay') {
        fwrite(STDERR, $record['outcome'] . "\n");
        return 1;
    }
    echo "$status $body\n";
    return $status >= 400 ? 1 : 0;
}

if (PHP_SAPI === 'cli-server') {
    serve();
} elseif (($argv[1] ?? '') === 'pay' && $argc === 5) {
    exit(pay_directly($argv[2], $argv[3], (int) $argv[4]));
} else {
    fwrite(STDERR, "usage: php payments.php pay SCOPE KEY AMOUNT\n");
    exit(2);
}
