-- The business rows of the payment services for MariaDB and MySQL.
CREATE TABLE payments (
  id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  amount BIGINT NOT NULL CHECK (amount > 0)
) ENGINE=InnoDB;
